// What a rank reaches in host memory: steps and sums of what rests there.
#pragma once

#include "sim/cluster/cluster.h"
#include "sim/cost/rates.h"
#include "traces/base/units.h"

namespace shard::cost {

/// A host of cuda devices, where its description says nothing of the processors: two sockets of eight channels
/// DDR4-3200 give 2 x 8 x 25.6 GB/s = 410 GB/s by data sheet, of which streams reach about 0.8. 64 cores at 2 GHz,
/// eight fp32 lanes and two operations a cycle: 2 Tflop/s of arithmetic other than products.
inline constexpr BytesPerSecond kHostMemory{0.8 * 410e9};
inline constexpr FlopsPerSecond kHostElementwise{2e12};
/// A disk: an NVMe drive of four PCIe 3.0 lanes, sequentially; shared by the ranks of a host.
inline constexpr BytesPerSecond kDisk{3e9};

/// Of one of `ranks_per_host` ranks. On a cpu cluster the host is the device.
[[nodiscard]] constexpr Rates host_rates(const cluster::Cluster& cluster, const Rates& device,
                                         std::int32_t ranks_per_host) {
  if (cluster.device == cluster::DeviceKind::cpu) return device;
  const double even = 1.0 / ranks_per_host;
  return {.matrix = FlopsPerSecond{kHostElementwise.count() * even},
          .attention = FlopsPerSecond{kHostElementwise.count() * even},
          .elementwise = FlopsPerSecond{kHostElementwise.count() * even},
          .memory = BytesPerSecond{cluster.host_memory_bandwidth.value_or(kHostMemory).count() * even},
          .launch = device.launch};
}

/// t = L + S / (B / r)
[[nodiscard]] constexpr Seconds disk_time(Bytes bytes, const Rates& host, std::int32_t ranks_per_host) {
  return host.launch + bytes / BytesPerSecond{kDisk.count() / ranks_per_host};
}

}  // namespace shard::cost
