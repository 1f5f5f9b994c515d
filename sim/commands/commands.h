// The commands of the `shardscope` binary. Each takes what follows its name, prints, and returns the exit code.
#pragma once

#include <span>
#include <string>

namespace shard::commands {

[[nodiscard]] int search_command(std::span<const std::string> arguments);
[[nodiscard]] int simulate_command(std::span<const std::string> arguments);
[[nodiscard]] int sweep_command(std::span<const std::string> arguments);
[[nodiscard]] int plan_command(std::span<const std::string> arguments);
[[nodiscard]] int compare_command(std::span<const std::string> arguments);
[[nodiscard]] int inspect_command(std::span<const std::string> arguments);
[[nodiscard]] int validate_command(std::span<const std::string> arguments);
[[nodiscard]] int convert_command(std::span<const std::string> arguments);
[[nodiscard]] int completion_command(std::span<const std::string> arguments);
[[nodiscard]] int man_command(std::span<const std::string> arguments);
[[nodiscard]] int mcp_command(std::span<const std::string> arguments, const std::string& version);

}  // namespace shard::commands
