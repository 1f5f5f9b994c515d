// Which rank owns the optimizer state of which parameter under ZeroRedundancyOptimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/like/rules.h"
#include "sim/model/parameters.h"

namespace shard::like {

/// Whole parameters, each to the rank that has the fewest elements so far, the first of equals. One owner per
/// parameter. PyTorch 1.8 deals them in registration order; sorting by size came later (rules.h).
[[nodiscard]] std::vector<std::int32_t> zero_owners(const ParameterList& parameters, std::int32_t world_size,
                                                    OwnerOrder order);

}  // namespace shard::like
