// `shardscope inspect RECORDING --replay-allocator`: a recording through the allocator's model.
#pragma once

#include <string>

#include "sim/cli/output.h"
#include "sim/commands/allocator_options.h"

namespace shard::commands {

/// Prints where the model of `allocator` agrees with the recording; under `settings` that the program did not have,
/// what it would have reserved. `incomplete`: a cut recording is taken as far as it goes. The exit code.
[[nodiscard]] int replay_recording(const std::string& path, const std::string& allocator,
                                   const AllocatorFlags& settings, bool incomplete, cli::Format format);

}  // namespace shard::commands
