// Options that contradict each other, or that have no effect beside each other: the rules of strategies
// (sim/strategy/rules.h) and a few more, the same for every command.
#pragma once

#include "sim/cli/command_line.h"
#include "traces/base/result.h"

namespace shard::commands {

/// Contradiction (78) for the first row of the table that holds of the options of `command`, naming both with where
/// each came from and the smallest change. An option that is given nowhere never contradicts another; what it is
/// without can make another meaningless only where the row says so. What takes the values themselves, as numbers or
/// with the model, is checked where they are resolved.
[[nodiscard]] Result<void> check_contradictions(const cli::Command& command);

}  // namespace shard::commands
