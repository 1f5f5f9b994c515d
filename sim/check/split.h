// Rule P28: the cuts of parameters and the exchanges of a tensor-parallel graph fit each other.
#pragma once

#include "sim/check/fault.h"
#include "sim/ir/plan.h"

namespace shard::plan::verification {

/// Which columns of each value this tensor rank has, followed through the graph. Once per plan and rank.
void check_split(const Plan& plan, std::int32_t rank, Faults& faults);

}  // namespace shard::plan::verification
