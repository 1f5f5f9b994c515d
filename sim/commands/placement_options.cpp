// Options that say where model data rests.
#include "sim/commands/placement_options.h"

#include <unistd.h>

#include <filesystem>

#include "sim/cli/contradiction.h"

namespace shard::commands {
namespace {

using plan::PlacementPolicy;
using plan::Share;

/// "device", "host", "disk" or a fraction that stays on the device.
cli::Reader share_reader(std::optional<Share>& target, bool disk) {
  return [&target, disk](std::string_view text, std::string_view where, const cli::Range&) -> Result<void> {
    if (text == "device") return target = plan::kOnDevice, Result<void>();
    if (text == "host") return target = plan::kOnHost, Result<void>();
    if (text == "disk" && disk) return target = plan::kOnDisk, Result<void>();
    const std::string help = std::string("device, host, ") + (disk ? "disk, " : "") +
                             "or the fraction of bytes that stays on the device, from 0 to 1";
    if (text == "disk")
      return Error{.code = Errc::contradiction,
                   .what = "only optimizer state may rest on disk",
                   .where = std::string(where),
                   .help = help};
    double fraction = 0;
    if (!cli::read_value(text, where, cli::Range{}, fraction))
      return Error{.code = Errc::usage,
                   .what = "'" + std::string(text) + "' is neither a memory nor a fraction",
                   .where = std::string(where),
                   .help = help};
    if (!(fraction >= 0 && fraction <= 1))
      return Error{.code = Errc::usage,
                   .what = "a fraction of " + std::string(text) + " is not between 0 and 1",
                   .where = std::string(where),
                   .help = help};
    target = Share{.on_device = fraction, .rest = Memory::host};
    return {};
  };
}

bool uses_disk(const PlacementOptions& o) {
  return o.optimizer && o.optimizer->on_device < 1 && o.optimizer->rest == Memory::disk;
}

}  // namespace

void add_placement_options(cli::Command& command, PlacementOptions& o) {
  cli::Group group = command.group("Placement");
  group
      .add_choice<PlacementPolicy>(
          "placement", &o.policy,
          {{"device", PlacementPolicy::device, "everything rests in device memory"},
           {"host", PlacementPolicy::host, "parameters, gradients and optimizer state rest in host memory"},
           {"static", PlacementPolicy::fixed, "as --param-placement, --grad-placement and --optimizer-placement say"},
           {"auto", PlacementPolicy::automatic, "in device memory what its capacity allows"}},
          "where model data rests between uses")
      .common();
  group.add_custom(
      "param-placement", "device|host|FRACTION",
      "parameters: a memory, or the fraction of their bytes that stays on the device (largest units first)",
      share_reader(o.parameters, false));
  group.add_custom("grad-placement", "device|host|FRACTION", "reduced gradients, in the same way",
                   share_reader(o.gradients, false));
  group.add_custom("optimizer-placement", "device|host|disk|FRACTION",
                   "optimizer state and master parameters, in the same way; a shard steps where they rest",
                   share_reader(o.optimizer, true));
  group
      .add("gpu-margin-mem-ratio", &o.margin_ratio, "FRACTION",
           "placement auto: share of the device memory left over that optimizer state may take")
      .least(0)
      .most(1);
  group
      .add("from-trace", &o.from_trace, "FILE",
           "placement auto: what activations and the like took at most, from a measured run")
      .reads_file();
  group
      .add("device-capacity", &o.device_capacity, "BYTES",
           "what a rank may use of device memory, instead of the cluster's; more does not run")
      .common();
  group.add("host-capacity", &o.host_capacity, "BYTES",
            "what the ranks of one host may use of its memory, instead of the cluster's");
  group.add("disk-path", &o.disk_path, "DIR", "where optimizer state rests on disk, in a file that ends with the run");
}

Result<plan::Placement> placement_of(const cli::Command& command, const PlacementOptions& o,
                                     std::optional<Bytes> cluster_memory) {
  plan::Placement p{.policy = o.policy, .parameters = o.parameters, .gradients = o.gradients, .optimizer = o.optimizer};
  if (o.policy == PlacementPolicy::fixed && !o.parameters && !o.gradients && !o.optimizer)
    return cli::contradiction(
        command.describe("placement") + " takes what the options of each kind say, and none is given",
        "--param-placement, --grad-placement or --optimizer-placement with it");
  if (o.policy == PlacementPolicy::automatic) {
    const std::optional<Bytes> capacity = o.device_capacity ? o.device_capacity : cluster_memory;
    if (!capacity)
      return cli::contradiction(command.describe("placement") +
                                    " fills device memory, but neither --device-capacity nor the cluster says how much "
                                    "there is",
                                "--device-capacity BYTES");
    p.device_capacity = *capacity;
    p.margin_ratio = o.margin_ratio;
  }
  if (uses_disk(o) && o.disk_path.empty())
    return cli::contradiction(
        command.describe("optimizer-placement") + " needs a directory, but --disk-path is not given",
        "--disk-path DIR");
  return p;
}

Result<void> check_disk_path(const cli::Command& command, const PlacementOptions& o) {
  if (!uses_disk(o)) return {};
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
