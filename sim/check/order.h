// Rules P7 and P33: ops of different streams, and collectives in flight together, that touch the same bytes, one of
// them writing, are ordered.
#pragma once

#include "sim/check/fault.h"
#include "sim/ir/plan.h"

namespace shard::plan::verification {

/// Both need a plan that passed check_structure.
void check_order(const Plan& plan, std::int32_t rank, Faults& faults);
void check_flights(const Plan& plan, std::int32_t rank, Faults& faults);

}  // namespace shard::plan::verification
