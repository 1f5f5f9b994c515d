// What ranks of one run must agree about before they train: options, and whatever else each knows for itself.
#pragma once

#include <functional>
#include <string>

#include "executor/comm/communicator.h"
#include "sim/cli/command_line.h"
#include "traces/base/result.h"

namespace shard::commands {

/// Asks every rank for a text. Where not all are alike, the error that `differs` words for the first rank whose text is
/// not rank 0's; the same on all ranks, and none leaves before all know. Collective and blocking.
[[nodiscard]] Result<void> all_say(
    const std::string& own, Communicator& communicator,
    const std::function<Error(std::int32_t rank, const std::string& said, const std::string& first)>& differs);

/// Whether all ranks were started with the same options (cli::Command::settled(): values in force, so it does not
/// matter whether a default, a file or the command line said them; files that are read count by their content).
/// Errc::contradiction naming the first that differs, both values and both ranks.
[[nodiscard]] Result<void> same_options(const cli::Command& command, Communicator& communicator);

}  // namespace shard::commands
