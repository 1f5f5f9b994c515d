// Shares of a device.
#include "sim/cost/rates.h"

#include <algorithm>

namespace shard::cost {

FlopsPerSecond product_peak(const cluster::Cluster& cluster, plan::Precision precision) {
  switch (precision) {
    case plan::Precision::fp32: return cluster.peak_fp32;
    case plan::Precision::tf32: return cluster.peak_tf32.value_or(cluster.peak_fp32);
    case plan::Precision::bf16: return cluster.peak_bf16.value_or(cluster.peak_fp32);
    case plan::Precision::fp16: return cluster.peak_fp16.value_or(cluster.peak_fp32);
  }
  return cluster.peak_fp32;
}

Rates rates(const cluster::Cluster& cluster, const cluster::Layout& layout, std::int32_t threads,
            plan::Precision precision) {
  const double even = 1.0 / layout.ranks_per_device;
  const double share =
      cluster.device == cluster::DeviceKind::cpu ? std::min(even, static_cast<double>(threads) / cluster.cores) : even;
  const double products = product_peak(cluster, precision).count() * share;
  return Rates{.matrix = FlopsPerSecond{products * cluster.matrix_efficiency},
               .attention = FlopsPerSecond{products * cluster.attention_efficiency},
               .elementwise = FlopsPerSecond{cluster.peak_fp32.count() * share * kElementwiseEfficiency},
               .memory = BytesPerSecond{cluster.memory_bandwidth.count() * cluster.memory_efficiency * even},
               .launch = cluster.launch};
}

}  // namespace shard::cost
