// The commands of shardscope-view; each takes the arguments after its name and returns the process's exit code.
#pragma once

#include <span>
#include <string>

namespace shard::view {

[[nodiscard]] int view_command(std::span<const std::string> arguments);
[[nodiscard]] int report_command(std::span<const std::string> arguments);

}  // namespace shard::view
