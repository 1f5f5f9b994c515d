// Lifetimes of buffers in plan order: from the op that first touches them to the last that does.
#pragma once

#include "sim/ir/plan.h"

namespace shard::plan {

/// Fills acquire and release of every op. A lifetime begins at a buffer's first touch in a phase, and again wherever
/// its earlier content is dead: at an operand that overwrites all of it, or is marked fresh. Persistent buffers are
/// acquired once, at their first touch over the phases in order, and never released.
void find_lifetimes(Plan& plan);

}  // namespace shard::plan
