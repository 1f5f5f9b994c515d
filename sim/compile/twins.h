// Ranks that differ only in how much of what they step is padding: one of them is allocated, the others alike.
#pragma once

#include <span>

#include "sim/ir/plan.h"

namespace shard::plan {

/// The one of `allocated` that would get the edges, lifetimes and offsets of `plan`, whose ops are scheduled, but for
/// the sizes of what stays; null where there is none. All are of one compilation.
[[nodiscard]] const Plan* find_twin(const Plan& plan, std::span<const Plan> allocated);

/// What allocate() makes of `plan`, from what it made of its twin.
[[nodiscard]] Plan allocate_like(Plan plan, const Plan& twin);

}  // namespace shard::plan
