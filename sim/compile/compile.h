// The compiler: model and strategy in, one plan per class of equal ranks out, through passes that can each be printed.
#pragma once

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

/// Compiles every class. Fails with contradiction (78) when the strategy contradicts itself or the model.
[[nodiscard]] Result<PlanSet> compile(std::shared_ptr<const model::Model> model, const Strategy& strategy);

/// The plan of rank 0 after the named pass, for reading; unknown names fail with usage (2).
[[nodiscard]] Result<Plan> compile_until(std::shared_ptr<const model::Model> model, const Strategy& strategy,
                                         std::string_view pass);

}  // namespace shard::plan
