// What a trace says of the plan behind it: its hash, the model, and the tables of units and of the strategy's fields.
#pragma once

#include "sim/ir/plan_set.h"
#include "traces/event.h"

namespace shard::record {

/// A header with world size, hashes, model and tables; kind, clocks and capacities are left to the producer.
[[nodiscard]] Header header_of(const plan::PlanSet& plans);

}  // namespace shard::record
