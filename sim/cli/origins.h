// Errors from below that mention options: where each one's value came from, added.
#pragma once

#include "sim/cli/command_line.h"
#include "traces/base/result.h"

namespace shard::cli {

/// The error with the origin of its value behind every option that it mentions, as Command::describe has it. Options
/// that `command` does not have stay as they are.
[[nodiscard]] Error with_origins(const Command& command, Error error);

}  // namespace shard::cli
