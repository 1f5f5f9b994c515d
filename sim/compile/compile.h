// The compiler: model and strategy in, one plan per class of equal ranks out, through passes that can each be printed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/plan_set.h"
#include "traces/base/result.h"

namespace shard::plan {

/// Pass names in order: build, differentiate, recompute, fuse, accumulate, tensor_parallel, shard, optimize, place,
/// schedule, order, allocate, overlap.
[[nodiscard]] std::vector<std::string_view> pass_names();

/// Which micro-steps of a step a plan holds.
enum class MicroSteps : std::uint8_t {
  all,     ///< to be run, traced, read; 78 where these are so many that a plan would not fit in memory
  folded,  ///< to be predicted by: equal ones once (Plan::micro_step_times), for the same offsets and extents
};

/// Whether a folded plan of the strategy is another than the whole one.
[[nodiscard]] bool folds(const Strategy& strategy);

/// Compiles every class. Fails with contradiction (78) when the strategy contradicts itself or the model. The hash is
/// the same for both: that of the folded plans where the strategy folds().
[[nodiscard]] Result<PlanSet> compile(std::shared_ptr<const model::Model> model, const Strategy& strategy,
                                      MicroSteps micro_steps = MicroSteps::all);

/// The plan of rank 0 after the named pass, with all micro-steps, for reading; unknown names fail with usage (2).
[[nodiscard]] Result<Plan> compile_until(std::shared_ptr<const model::Model> model, const Strategy& strategy,
                                         std::string_view pass);

}  // namespace shard::plan
