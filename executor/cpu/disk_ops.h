// Ops that touch the disk: copies to and from it, births on it, and the saving of what rests there.
#pragma once

#include <cstddef>
#include <span>

#include "executor/comm/progress.h"
#include "executor/cpu/memories.h"
#include "executor/cpu/state_ops.h"
#include "sim/ir/plan.h"

namespace shard::cpu {

[[nodiscard]] bool touches_disk(const plan::Plan& plan, const plan::Op& op);

/// Operand i lies at `at[i]` where it is in host memory, and in the plan's place in the file where it is on disk.
/// What is done is noted in `progress` while it runs, unless that is null. Errors: Errc::io, and those of births
/// (StateOps).
[[nodiscard]] Result<void> run_on_disk(const plan::Plan& plan, const plan::Position& position, const Memories& memories,
                                       const plan::Op& op, std::span<std::byte* const> at, const StateOps& state,
                                       Progress* progress = nullptr);

}  // namespace shard::cpu
