// `inspect --oom`: what PyTorch's out-of-memory message says, which cause is likely, and what helps.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/output.h"
#include "sim/commands/holders_options.h"

namespace shard::commands {

/// `snapshots`: files of the same run beside it, which say who held the memory; none as a rule.
[[nodiscard]] int inspect_oom(const std::string& path, const std::vector<std::string>& snapshots,
                              const HoldersOptions& holders, bool incomplete, cli::Format format);

}  // namespace shard::commands
