// The commands of shardscope-view; each takes the arguments after its name and returns the process's exit code.
#pragma once

#include <span>
#include <string>

namespace shard::view {

[[nodiscard]] int view_command(std::span<const std::string> arguments);
[[nodiscard]] int report_command(std::span<const std::string> arguments);
/// `convert TRACE OUTPUT.png`, handed over by shardscope, which writes the other forms.
[[nodiscard]] int convert_picture_command(std::span<const std::string> arguments);

}  // namespace shard::view
