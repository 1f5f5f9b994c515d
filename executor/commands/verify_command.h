// `shardscope verify`: is a strategy's training that of stage 0 on one rank, bit for bit?
#pragma once

#include <span>
#include <string>

namespace shard::commands {

/// Takes what follows the command's name, prints, and returns the exit code: 0 for equal bits, 1 where they differ.
[[nodiscard]] int verify_command(std::span<const std::string> arguments);

}  // namespace shard::commands
