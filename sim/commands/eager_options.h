// Options that describe a program under eager PyTorch to `simulate --like pytorch`.
#pragma once

#include "sim/cli/command_line.h"
#include "sim/commands/allocator_options.h"
#include "sim/like/simulate_eager.h"
#include "traces/base/result.h"

namespace shard::commands {

/// Declares --model-code, --attention, --optimizer-implementation, --zero-grad, --autocast, and those of the allocator.
/// Both targets live as long as the Command.
void add_eager_options(cli::Command& command, like::EagerOptions& options, AllocatorFlags& allocator);

/// Errc::contradiction when one of them is given and eager PyTorch 2 is not what is predicted.
[[nodiscard]] Result<void> refuse_eager_options(const cli::Command& command);

}  // namespace shard::commands
