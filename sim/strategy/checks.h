// Whether a strategy contradicts itself or the model: what the compiler refuses.
#pragma once

#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::plan {

/// Checks a strategy against itself and a model; what compile() refuses.
[[nodiscard]] Result<void> check(const model::Model& model, const Strategy& strategy);
/// Of these checks, whether the ranks can share the model: what is needed to know the part that a rank has.
[[nodiscard]] Result<void> check_tensor_parallel(const model::Model& model, const Strategy& strategy);

}  // namespace shard::plan
