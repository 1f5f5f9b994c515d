// Options that say where model data rests.
#include "sim/commands/placement_options.h"

#include <unistd.h>

#include <filesystem>

#include "sim/cli/contradiction.h"
#include "traces/base/numbers.h"

namespace shard::commands {
void add_memory_options(cli::Command& command, PlacementOptions& o) {
  cli::Group group = command.group("Placement");
  group.add("host-capacity", &o.host_capacity, "BYTES",
            "what the ranks of one host may use of its memory, instead of the cluster's");
  group.add("disk-path", &o.disk_path, "DIR", "where optimizer state rests on disk, in a file that ends with the run")
      .may_differ("a place on the rank's own machine");
}

Result<plan::Placement> placement_of(const cli::Command& command, const PlacementOptions& o,
                                     const plan::Placement& chosen, const cluster::Room& cluster_room) {
  plan::Placement p = chosen;
  if (p.policy == plan::PlacementPolicy::fixed && !p.parameters && !p.gradients && !p.optimizer)
    return cli::contradiction(
        command.describe("placement") + " takes what the options of each kind say, and none is given",
        "--param-placement, --grad-placement or --optimizer-placement with it");
  if (p.policy == plan::PlacementPolicy::automatic) {
    cluster::Room room = cluster_room;
    if (o.device_capacity) room.capacity = o.device_capacity;
    const std::optional<Bytes> capacity = room.at_least();
    if (!capacity)
      return cli::contradiction(command.describe("placement") +
                                    " fills device memory, but neither --device-capacity nor the cluster says how much "
                                    "there is",
                                "--device-capacity BYTES");
    if (*capacity == Bytes{0})
      return cli::contradiction(command.describe("placement") + " has no device memory to fill: up to " +
                                    show_bytes(room.outside.high) + " of " + show_bytes(*room.capacity) +
                                    " are CUDA's context and libraries",
                                "a larger --device-capacity, or --placement host");
    p.device_capacity = *capacity;
  }
  if (p.rests_on_disk() && o.disk_path.empty())
    return cli::contradiction(
        command.describe("optimizer-placement") + " needs a directory, but --disk-path is not given",
        "--disk-path DIR");
  return p;
}

Result<void> check_disk_path(const cli::Command& command, const PlacementOptions& o, const plan::Placement& placement) {
  if (!placement.rests_on_disk()) return {};
  std::error_code ignored;
  if (!std::filesystem::is_directory(o.disk_path, ignored))
    return Error{.code = Errc::cannot_create,
                 .what = "there is no directory " + o.disk_path,
                 .where = command.describe("disk-path"),
                 .help = "mkdir -p " + o.disk_path};
  if (access(o.disk_path.c_str(), W_OK) != 0)
    return Error{.code = Errc::cannot_create,
                 .what = "the directory " + o.disk_path + " cannot be written to",
                 .where = command.describe("disk-path"),
                 .help = "a directory of yours"};
  return {};
}

}  // namespace shard::commands
