// Options that describe a program under another framework to `simulate` (sim/like/frameworks/option_fields.h).
#pragma once

#include "sim/cli/command_line.h"
#include "sim/commands/allocator_options.h"
#include "sim/like/simulate_eager.h"

namespace shard::commands {

/// Declares the rows of the table, and the options of the allocator. Both targets live as long as the Command.
void add_eager_options(cli::Command& command, like::EagerOptions& options, AllocatorFlags& allocator);

}  // namespace shard::commands
