// Shares of a device.
#include "sim/cost/rates.h"

#include <algorithm>

namespace shard::cost {

Rates rates(const cluster::Cluster& cluster, const cluster::Layout& layout, std::int32_t threads) {
  const double even = 1.0 / layout.ranks_per_device;
  const double share =
      cluster.device == cluster::DeviceKind::cpu ? std::min(even, static_cast<double>(threads) / cluster.cores) : even;
  const double peak = cluster.peak_fp32.count() * share;
  return Rates{.matrix = FlopsPerSecond{peak * cluster.matrix_efficiency},
               .attention = FlopsPerSecond{peak * cluster.attention_efficiency},
               .elementwise = FlopsPerSecond{peak * kElementwiseEfficiency},
               .memory = BytesPerSecond{cluster.memory_bandwidth.count() * cluster.memory_efficiency * even},
               .launch = cluster.launch};
}

}  // namespace shard::cost
