// What a rank reaches in host memory: steps and sums of what rests there.
#pragma once

#include <algorithm>

#include "sim/cluster/cluster.h"
#include "sim/cost/rates.h"
#include "traces/base/units.h"

namespace shard::cost {

/// A host of cuda devices, where its description says nothing of the processors: two sockets of eight channels
/// DDR4-3200 give 2 x 8 x 25.6 GB/s = 410 GB/s by data sheet, of which streams reach about 0.8. 64 cores at 2 GHz,
/// eight fp32 lanes and two operations a cycle: 2 Tflop/s of arithmetic other than products. A thread has one of those
/// cores, and reaches 24 GB/s (Adam with one thread, measured).
inline constexpr BytesPerSecond kHostMemory{0.8 * 410e9};
inline constexpr FlopsPerSecond kHostElementwise{2e12};
inline constexpr std::int32_t kHostCores = 64;
inline constexpr BytesPerSecond kThreadMemory{24e9};
/// A disk: an NVMe drive of four PCIe 3.0 lanes, sequentially; shared by the ranks of a host.
inline constexpr BytesPerSecond kDisk{3e9};

/// Of one of `ranks_per_host` ranks, which works on the host with `threads` threads: as much as they reach, at most its
/// even share. On a cpu cluster the host is the device.
[[nodiscard]] constexpr Rates host_rates(const cluster::Cluster& cluster, const Rates& device,
                                         std::int32_t ranks_per_host, std::int32_t threads) {
  if (cluster.device == cluster::DeviceKind::cpu) return device;
  const double whole = cluster.host_memory_bandwidth.value_or(kHostMemory).count();
  const BytesPerSecond memory{std::min(whole / ranks_per_host, threads * kThreadMemory.count())};
  const double cores = std::min(1.0 * kHostCores / ranks_per_host, 1.0 * threads);
  const FlopsPerSecond flops{kHostElementwise.count() * cores / kHostCores};
  return {.matrix = flops, .attention = flops, .elementwise = flops, .memory = memory, .launch = device.launch};
}

/// t = L + S / (B / r)
[[nodiscard]] constexpr Seconds disk_time(Bytes bytes, const Rates& host, std::int32_t ranks_per_host) {
  return host.launch + bytes / BytesPerSecond{kDisk.count() / ranks_per_host};
}

}  // namespace shard::cost
