// Rules P1 to P6, P21, P34, P35 and P37: ids, operands, edges, lifetimes, offsets, the arenas' sizes and where products
// begin.
#pragma once

#include "sim/check/fault.h"
#include "sim/ir/plan.h"

namespace shard::plan::verification {

void check_structure(const Plan& plan, std::int32_t rank, Faults& faults);

}  // namespace shard::plan::verification
