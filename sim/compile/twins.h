// Ranks that differ only in how much of what they step is padding: one of them is allocated, the others alike.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/compile/draft.h"

namespace shard::plan {

/// By plan, the first one that gets the same edges, lifetimes and offsets but for the sizes of what stays; itself where
/// there is none before it. The plans are those of one compilation behind its pass schedule.
[[nodiscard]] std::vector<std::size_t> first_twins(std::span<const Draft> plans);

/// What the passes behind schedule make of `plan`, from what they made of its twin.
[[nodiscard]] Draft allocate_like(Draft plan, const Plan& twin);

}  // namespace shard::plan
