// Rules P1 to P6 and P21: ids, operands, edges, lifetimes, offsets and the arenas' sizes.
#pragma once

#include "sim/check/fault.h"
#include "sim/ir/plan.h"

namespace shard::plan::verification {

void check_structure(const Plan& plan, std::int32_t rank, Faults& faults);

}  // namespace shard::plan::verification
