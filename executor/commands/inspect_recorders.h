// `shardscope inspect PATH` of flight recorders: the verdict, and the last events of each rank.
#pragma once

#include <span>
#include <string>

namespace shard::commands {

/// Runs the command on what follows its name. Called by main only.
[[nodiscard]] int inspect_recorders_command(std::span<const std::string> arguments);

}  // namespace shard::commands
