// Rule P7: ops of different streams that touch the same bytes, one of them writing, are ordered by edges.
#pragma once

#include "sim/check/fault.h"
#include "sim/ir/plan.h"

namespace shard::plan::verification {

/// Needs a plan that passed check_structure.
void check_order(const Plan& plan, std::int32_t rank, Faults& faults);

}  // namespace shard::plan::verification
