// Collectives of two traces: whole runs where they have equally many steps, else step by step.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/compare.h"

namespace shard {

/// `steps`: how many training steps each has. Runs of different length are compared by the spans of their ops: calls
/// and bytes of one step of each phase that both have (the first one that differs from the prediction's, where one
/// does). Without such spans, and for equally long runs, by the totals that the producers counted.
[[nodiscard]] std::vector<CollectiveComparison> compare_collectives(const Trace& first, const Trace& second,
                                                                    const Pair<std::int64_t>& steps);

}  // namespace shard
