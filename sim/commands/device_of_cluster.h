// Which kind of device a plan is for, where a cluster says which there is.
#pragma once

#include "sim/cli/command_line.h"
#include "sim/cluster/cluster.h"
#include "sim/commands/strategy_options.h"

namespace shard::commands {

/// Errc::contradiction where --device and --cluster are both given and are of different kinds.
[[nodiscard]] Result<void> check_device(const cli::Command& command, const StrategyOptions& options,
                                        const cluster::Cluster& cluster);

/// The same, and without --device that of the cluster: for commands that run nothing.
[[nodiscard]] Result<void> choose_device(const cli::Command& command, StrategyOptions& options,
                                         const cluster::Cluster& cluster);

}  // namespace shard::commands
