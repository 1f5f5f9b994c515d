// The plan verifier: is a compiled plan a correct, safe program for training? Its rules are in sim/ir/SPEC.md.
#pragma once

#include "sim/ir/plan.h"
#include "sim/ir/plan_set.h"
#include "traces/base/ids.h"
#include "traces/base/result.h"

namespace shard::plan {

/// Checks the plan of one class of ranks as `rank` of it runs it. The plan must be complete: the output of the last
/// pass. What other ranks do is assumed to be alike; verify(PlanSet) checks that too.
///
/// Shares no code with the passes: it reads nothing but the plan, the model and the graph, and follows every byte from
/// where it is written to where it is read.
///
/// Errc::internal for the first broken rule: `what` ends with its number, "(P7)"; `where` has rank, phase and op.
/// Cost: about that of compiling the class (tests/bench/plan_bench.cpp); linear in ops x operands.
[[nodiscard]] Result<void> verify(const Plan& plan, Rank rank);

/// As the class's representative runs it.
[[nodiscard]] Result<void> verify(const Plan& plan);

/// Every class, as its first and its last rank run it, and what classes must agree on: collectives, ids, and that every
/// element of every parameter is stepped where it must be, once.
[[nodiscard]] Result<void> verify(const PlanSet& plans);

}  // namespace shard::plan
