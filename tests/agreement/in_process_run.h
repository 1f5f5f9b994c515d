// Runs a whole strategy in one process, a thread per rank, and collects what each rank measured.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "executor/comm/in_process.h"
#include "executor/train/session.h"
#include "sim/check/verify.h"
#include "sim/compile/compile.h"
#include "tests/agreement/emulated_run.h"

namespace shard {

struct InProcessRun {
  plan::PlanSet plans;
  std::vector<train::SessionResult> ranks;
};

/// Fails with the first rank's error. data: as open_data. Plans for GPUs run on an emulated device.
inline Result<InProcessRun> run_in_process(const std::shared_ptr<const model::Model>& model,
                                           const plan::Strategy& strategy, const train::SessionOptions& options,
                                           const std::string& data = "random") {
  Result<plan::PlanSet> plans = plan::compile(model, strategy);
  if (!plans) return plans.error();
  if (Result<void> sound = plan::verify(*plans); !sound) return sound.error();
  if (strategy.device == plan::Device::cuda) {
    Result<std::vector<train::SessionResult>> ranks = run_emulated(*plans, *model, strategy, options, data);
    if (!ranks) return ranks.error();
    return InProcessRun{.plans = std::move(*plans), .ranks = std::move(*ranks)};
  }
  auto communicators = make_in_process(strategy.world_size);
  std::vector<std::optional<Result<train::SessionResult>>> results(static_cast<std::size_t>(strategy.world_size));
  {
    std::vector<std::jthread> threads;
    for (std::int32_t rank = 0; rank < strategy.world_size; ++rank)
      threads.emplace_back([&, rank] {
        auto source = open_data(data, *model,
                                {.batch = strategy.micro_batch, .sequence = strategy.sequence, .seed = options.seed});
        cpu::ThreadPool pool(strategy.threads);
        auto& communicator = *communicators[static_cast<std::size_t>(rank)];
        auto& result = results[static_cast<std::size_t>(rank)];
        result = source ? train::run_session(plans->of_rank(rank), communicator, **source, pool, options)
                        : Result<train::SessionResult>(source.error());
        if (!*result) communicator.abort(to_string(result->error()));
      });
  }
  InProcessRun run{.plans = std::move(*plans), .ranks = {}};
  for (auto& result : results) {
    if (!*result) return result->error();
    run.ranks.push_back(std::move(**result));
  }
  return run;
}

}  // namespace shard
