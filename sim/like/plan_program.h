// A plan of ours that stands for another framework's program, as that program.
#pragma once

#include <vector>

#include "sim/ir/plan.h"
#include "sim/like/passes.h"
#include "sim/like/program/program.h"

namespace shard::like {

/// Every op of `plan`, which has its lifetimes, in plan order: what it takes, what it does, sends and copies, and what
/// it gives back. `marks` are in plan order.
[[nodiscard]] Program program_of(const plan::Plan& plan, const std::vector<Mark>& marks);

}  // namespace shard::like
