// `shardscope calibrate`: measures this machine. Prints to the given streams; returns the exit code of the process.
#pragma once

#include <span>
#include <string>

namespace shard::commands {

/// Runs the command on what follows its name. Called by main only.
[[nodiscard]] int calibrate_command(std::span<const std::string> arguments);

}  // namespace shard::commands
