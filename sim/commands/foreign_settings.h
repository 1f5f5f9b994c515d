// Which of a foreign file's settings a command takes.
#pragma once

#include "sim/cli/command_line.h"
#include "sim/foreign/foreign_config.h"

namespace shard::commands {

/// Whether a command's answer may be another framework's: --like names one, or it is left open and --cluster has GPUs.
[[nodiscard]] bool framework_may_answer(const cli::Command& command);

/// Moves to left_out what the command has no option for, and what has no meaning beside the command line: that wins.
/// What is left contradicts no rule of options (sim/strategy/rules.h) that looks at two of them.
void keep_what_makes_sense(const cli::Command& command, foreign::ForeignConfig& config);

}  // namespace shard::commands
