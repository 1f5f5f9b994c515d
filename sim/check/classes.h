// Rules P19 and P16 over all ranks: what the classes of a plan set must agree on, and who steps what.
#pragma once

#include "sim/check/fault.h"
#include "sim/ir/plan_set.h"

namespace shard::plan::verification {

void check_classes(const PlanSet& plans, Faults& faults);

}  // namespace shard::plan::verification
