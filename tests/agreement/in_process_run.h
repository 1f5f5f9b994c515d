// Runs a whole strategy in one process, a thread per rank, and collects what each rank measured.
#pragma once

#include <memory>
#include <vector>

#include "executor/comm/in_process.h"
#include "executor/train/in_process_run.h"
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
  auto ranks =
      train::run_in_process(*plans, make_in_process(strategy.world_size), data,
                            {.batch = strategy.micro_batch, .sequence = strategy.sequence, .seed = options.seed},
                            [&](std::int32_t) { return options; });
  if (!ranks) return ranks.error();
  return InProcessRun{.plans = std::move(*plans), .ranks = std::move(*ranks)};
}

}  // namespace shard
