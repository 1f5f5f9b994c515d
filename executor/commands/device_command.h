// `shardscope inspect --device cuda`: what there is of GPUs here.
#pragma once

#include <span>
#include <string>

namespace shard::commands {

/// Runs the command on what follows its name. Called by main only.
[[nodiscard]] int device_command(std::span<const std::string> arguments);

}  // namespace shard::commands
