// Options that say where model data rests, and how much each memory holds.
#pragma once

#include <optional>
#include <string>

#include "sim/cli/command_line.h"
#include "sim/cluster/verdict.h"
#include "sim/strategy/placement.h"
#include "traces/base/result.h"

namespace shard::commands {

/// What stands beside a strategy's placement.
struct PlacementOptions {
  std::string from_trace{};
  std::optional<Bytes> device_capacity{};
  std::optional<Bytes> host_capacity{};
  std::string disk_path{};
};

/// Declares --host-capacity and --disk-path; the others of the group "Placement" are fields of a strategy.
void add_memory_options(cli::Command& command, PlacementOptions& options);

/// What was chosen, with the capacity that it fills. Errors: contradiction (78), naming both options and where each
/// came from: static without a share, disk without a path, auto without a capacity. `cluster_memory`: the device memory
/// of the cluster, where it has a limit.
[[nodiscard]] Result<plan::Placement> placement_of(const cli::Command& command, const PlacementOptions& options,
                                                   const plan::Placement& chosen,
                                                   const cluster::Room& cluster_room = {});

/// For commands that run: is the directory for what rests on disk there?
[[nodiscard]] Result<void> check_disk_path(const cli::Command& command, const PlacementOptions& options,
                                           const plan::Placement& placement);

}  // namespace shard::commands
