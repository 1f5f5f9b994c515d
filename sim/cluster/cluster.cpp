// Ranks onto hosts and devices.
#include "sim/cluster/cluster.h"

#include <algorithm>

namespace shard::cluster {

Layout layout(const Cluster& cluster, std::int32_t world_size) {
  const std::int32_t needed = divide_up(world_size, cluster.devices_per_host);
  const std::int32_t hosts = std::min(needed, cluster.hosts.value_or(needed));
  return Layout{world_size, hosts, divide_up(divide_up(world_size, hosts), cluster.devices_per_host)};
}

Layout layout_of(const RankGroup& group, const Layout& all) {
  std::int32_t hosts = 0;
  for (std::int32_t i = 0, last = -1; i < group.count; ++i) {
    const std::int32_t host = group.rank_of(i) / all.ranks_per_host();
    if (host != last) ++hosts;
    last = host;
  }
  return Layout{group.count, hosts, all.ranks_per_device};
}

Result<void> check_ranks(const Cluster& cluster, std::int32_t world_size) {
  const Layout l = layout(cluster, world_size);
  if (l.ranks_per_device > 1 && !cluster.ranks_share_device) {
    const std::int64_t devices = std::int64_t{cluster.devices_per_host} * l.hosts;
    return Error{Errc::contradiction,
                 std::to_string(world_size) + " ranks need as many devices, the cluster has " + std::to_string(devices),
                 "cluster " + cluster.name, "--world-size " + std::to_string(devices) + ", or more 'hosts'"};
  }
  if (l.hosts > 1 && !cluster.inter_host) {
    return Error{Errc::contradiction,
                 std::to_string(world_size) + " ranks need " + std::to_string(l.hosts) +
                     " hosts, and the cluster names no link between hosts",
                 "cluster " + cluster.name, "describe it in 'inter_host_link'"};
  }
  return {};
}

}  // namespace shard::cluster
