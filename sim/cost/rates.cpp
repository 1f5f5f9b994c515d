// Shares of a device.
#include "sim/cost/rates.h"

#include <algorithm>

namespace shard::cost {

FlopsPerSecond product_peak(const cluster::Cluster& cluster, const plan::Target& target) {
  const FlopsPerSecond fp32 = cluster.peak_fp32;
  if (target.storage == Dtype::bf16) return cluster.peak_bf16.value_or(fp32);
  if (target.storage == Dtype::f16) return cluster.peak_fp16.value_or(fp32);
  return target.tensor_float ? cluster.peak_tf32.value_or(fp32) : fp32;
}

Rates rates(const cluster::Cluster& cluster, const cluster::Layout& layout, const plan::Target& target) {
  const double even = 1.0 / layout.ranks_per_device;
  const double share = cluster.device == cluster::DeviceKind::cpu
                           ? std::min(even, static_cast<double>(target.threads) / cluster.cores)
                           : even;
  const double products = product_peak(cluster, target).count() * share;
  return Rates{.matrix = FlopsPerSecond{products * cluster.matrix_efficiency},
               .attention = FlopsPerSecond{products * cluster.attention_efficiency},
               .elementwise = FlopsPerSecond{cluster.peak_fp32.count() * share * kElementwiseEfficiency},
               .memory = BytesPerSecond{cluster.memory_bandwidth.count() * cluster.memory_efficiency * even},
               .launch = cluster.launch};
}

}  // namespace shard::cost
