// Runs that are saved, and runs that go on, in one process: a keeper per rank, on CPU ranks or an emulated device.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/train/checkpoint_keeper.h"
#include "executor/train/resumed_run.h"
#include "tests/agreement/in_process_run.h"

namespace shard {

/// What a run does about checkpoints; empty: nothing.
struct Kept {
  std::filesystem::path save{};
  std::int64_t every = 0;
  std::filesystem::path resume{};
  bool inexact = false;
  bool beside_training = false;
};

/// As run_in_process(), with those checkpoints.
inline Result<InProcessRun> run_kept(const plan::ModelPtr& model, const plan::Strategy& strategy,
                                     const train::SessionOptions& options, const Kept& kept) {
  Result<plan::PlanSet> plans = plan::compile(model, strategy);
  if (!plans) return plans.error();
  if (Result<void> sound = plan::verify(*plans); !sound) return sound.error();
  std::shared_ptr<const train::ResumedRun> resumed;
  if (!kept.resume.empty()) {
    auto opened = train::ResumedRun::open(kept.resume, *plans->of_rank(0).model, strategy, kept.inexact);
    if (!opened) return opened.error();
    resumed = *opened;
  }
  std::vector<std::unique_ptr<train::CheckpointKeeper>> keepers(static_cast<std::size_t>(strategy.world_size));
  const auto own = [&](const plan::Plan& plan, Communicator& communicator) {
    train::SessionOptions session = options;
    if (resumed) resumed->tell(session);
    if (kept.save.empty()) return session;
    auto& keeper = keepers[static_cast<std::size_t>(communicator.rank().value)];
    keeper = std::make_unique<train::CheckpointKeeper>(
        train::CheckpointPlan{.tensors = train::checkpoint_tensors(*plan.model, strategy),
                              .folder = kept.save,
                              .every = kept.every,
                              .beside_training = kept.beside_training,
                              .config = "{}"},
        plan, communicator, nullptr);
    session.keeper = keeper.get();
    return session;
  };
  const BatchShape shape{.batch = strategy.micro_batch, .sequence = strategy.sequence, .seed = options.seed};
  if (strategy.device == plan::Device::cpu) {
    const auto communicators = make_in_process(strategy.world_size);
    auto ranks = train::run_in_process(*plans, communicators, "random", shape, [&](std::int32_t rank) {
      return own(plans->of_rank(rank), *communicators[static_cast<std::size_t>(rank)]);
    });
    if (!ranks) return ranks.error();
    return InProcessRun{.plans = std::move(*plans), .ranks = std::move(*ranks)};
  }
  const cuda::Device device = cuda::test::tested_device({});
  std::vector<train::SessionResult> results(static_cast<std::size_t>(strategy.world_size));
  const Result<void> done =
      train::run_ranks(*device.api, *device.kernels, strategy.world_size, std::chrono::seconds(60), true,
                       [&](train::DeviceRank& rank) -> Result<void> {
                         const std::int32_t number = rank.communicator.rank().value;
                         const auto source = open_data("random", *model, shape);
                         if (!source) return source.error();
                         cpu::ThreadPool pool(1);
                         const plan::Plan& plan = plans->of_rank(number);
                         Result<train::SessionResult> result =
                             train::run_session(rank, plan, **source, pool, own(plan, rank.communicator));
                         if (!result) return result.error();
                         results[static_cast<std::size_t>(number)] = std::move(*result);
                         return {};
                       });
  if (!done) return done.error();
  return InProcessRun{.plans = std::move(*plans), .ranks = std::move(results)};
}

}  // namespace shard
