// The commands of shardscope-profile; each takes the arguments after its name and returns the process's exit code.
#pragma once

#include <span>
#include <string>

namespace shard::dryrun {

[[nodiscard]] int dryrun_command(std::span<const std::string> arguments);

}  // namespace shard::dryrun

namespace shard::profiler {

[[nodiscard]] int profile_command(std::span<const std::string> arguments);

}  // namespace shard::profiler
