// Errors from below that name options by their values: where each came from, added.
#pragma once

#include "sim/cli/command_line.h"
#include "traces/base/result.h"

namespace shard::cli {

/// Each "--name value" in what an error says that is an option's value in force, followed by its origin
/// (Command::describe), and so is one of several values, or of a list; another value of that option, or one in the
/// help, stays as it is.
[[nodiscard]] Error with_origins(const Command& command, Error error);

}  // namespace shard::cli
