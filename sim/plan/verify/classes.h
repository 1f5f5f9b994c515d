// Rules P19 and P16 over all ranks: what the classes of a plan set must agree on, and who steps what.
#pragma once

#include "sim/plan/compile.h"
#include "sim/plan/verify/fault.h"

namespace shard::plan::verification {

void check_classes(const PlanSet& plans, Faults& faults);

}  // namespace shard::plan::verification
