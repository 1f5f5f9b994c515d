// What main() of every binary of the family does.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "sim/cli/dispatch.h"

namespace shard::cli {

/// Runs the command that the process's arguments (without argv[0]) name, hands over to the program that runs it, or
/// prints help; returns the process's exit code. Output that could not be written is an error, and so is an exception
/// that nobody caught (uncaught.h). What is written to the two streams is made printable (screen.h). SIGINT, SIGTERM,
/// SIGHUP and SIGQUIT end the process with a message and nothing left behind (traces/base/stop.h); SIGXFSZ does not: a
/// file beyond the limit on sizes is a failed write. For main() only.
[[nodiscard]] int run_program(const Program& program, std::span<const std::string> arguments, std::ostream& out,
                              std::ostream& errors);

}  // namespace shard::cli
