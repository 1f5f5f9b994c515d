// Rules P8 to P18, P20, P22, P23: runs a plan on meanings instead of numbers; every op must read what it is about.
#pragma once

#include "sim/check/fault.h"
#include "sim/ir/plan.h"

namespace shard::plan::verification {

/// Needs a plan that passed check_structure.
void check_meaning(const Plan& plan, std::int32_t rank, Faults& faults);

}  // namespace shard::plan::verification
