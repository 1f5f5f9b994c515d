// The cluster's kind, unless --device says another.
#include "sim/commands/device_of_cluster.h"

#include "sim/cli/contradiction.h"

namespace shard::commands {
namespace {

plan::Device kind_of(const cluster::Cluster& cluster) {
  return cluster.device == cluster::DeviceKind::cuda ? plan::Device::cuda : plan::Device::cpu;
}

}  // namespace

Result<void> check_device(const cli::Command& command, const StrategyOptions& options,
                          const cluster::Cluster& cluster) {
  const bool both = command.has("device") && command.given("device") && command.given("cluster");
  if (!both || options.chosen.device == kind_of(cluster)) return {};
  const bool gpus = cluster.device == cluster::DeviceKind::cuda;
  return cli::contradiction(command.describe("device") + " is not what " + command.describe("cluster") +
                                " has: " + (gpus ? "GPUs" : "processors"),
                            std::string("--device ") + cluster::to_string(cluster.device) +
                                (gpus ? ", or --cluster cpu-local" : ", or a cluster of GPUs"));
}

Result<void> choose_device(const cli::Command& command, StrategyOptions& options, const cluster::Cluster& cluster) {
  if (Result<void> ok = check_device(command, options, cluster); !ok) return ok;
  if (!command.has("device") || !command.given("device")) options.chosen.device = kind_of(cluster);
  return {};
}

}  // namespace shard::commands
