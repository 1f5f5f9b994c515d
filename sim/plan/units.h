// Parameters into units: what is gathered, released and reduced together, for each kind of unit.
#pragma once

#include <utility>
#include <vector>

#include "sim/plan/plan.h"

namespace shard::plan {

/// Flats padded to multiples of the ranks that share shards, and the units made of them, in parameter order.
[[nodiscard]] std::pair<std::vector<Flat>, std::vector<Unit>> make_units(const model::Model& model,
                                                                         const Strategy& strategy);

/// PyTorch's ZeroRedundancyOptimizer: parameters by size, largest first (stable), each to the rank with the fewest
/// elements so far (first on ties). Returns the owner of each parameter.
[[nodiscard]] std::vector<std::int32_t> greedy_owners(const ParameterList& parameters, std::int32_t ranks);

}  // namespace shard::plan
