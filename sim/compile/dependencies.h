// Edges between streams: an op waits for those of other streams whose bytes it reads or overwrites.
#pragma once

#include "sim/ir/plan.h"

namespace shard::plan {

/// Adds an edge for every read-after-write, write-after-read and write-after-write on one buffer across streams that is
/// not already implied by other edges and stream order. Ops must have ids, ascending in plan order.
void order_buffers(const Plan& plan, PhaseOps& phase);

/// Adds edges where a buffer takes bytes that another gave back, from the last accesses of the old to the op that
/// acquires the new. Needs acquire, release and offsets.
void order_reuse(const Plan& plan, PhaseOps& phase);

}  // namespace shard::plan
