// `shardscope checkpoint list|verify|show DIR`: what a run saved.
#pragma once

#include <span>
#include <string>

namespace shard::commands {

/// Runs the command on what follows its name. Called by main only.
[[nodiscard]] int checkpoint_command(std::span<const std::string> arguments);

}  // namespace shard::commands
