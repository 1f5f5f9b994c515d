// Options that say where model data rests, and how much each memory holds.
#pragma once

#include <optional>
#include <string>

#include "sim/cli/command_line.h"
#include "sim/strategy/placement.h"
#include "traces/base/result.h"

namespace shard::commands {

struct PlacementOptions {
  plan::PlacementPolicy policy = plan::PlacementPolicy::device;
  std::optional<plan::Share> parameters{};
  std::optional<plan::Share> gradients{};
  std::optional<plan::Share> optimizer{};
  double margin_ratio = 1;
  std::string from_trace{};
  std::optional<Bytes> device_capacity{};
  std::optional<Bytes> host_capacity{};
  std::string disk_path{};
};

/// Declares --placement, --param-placement, --grad-placement, --optimizer-placement, --gpu-margin-mem-ratio,
/// --from-trace, --device-capacity,
/// --host-capacity, --disk-path.
void add_placement_options(cli::Command& command, PlacementOptions& options);

/// Errors: contradiction (78), naming both options and where each came from: static without a share, disk without a
/// path, auto without a capacity. `cluster_memory`: the device memory of the cluster, where it has a limit.
[[nodiscard]] Result<plan::Placement> placement_of(const cli::Command& command, const PlacementOptions& options,
                                                   std::optional<Bytes> cluster_memory = std::nullopt);

/// For commands that run: is the directory for what rests on disk there?
[[nodiscard]] Result<void> check_disk_path(const cli::Command& command, const PlacementOptions& options);

}  // namespace shard::commands
