// What one rank reaches on its device: the data sheet's peaks, times reached shares, divided by who shares the device.
#pragma once

#include "sim/cluster/cluster.h"
#include "traces/base/units.h"

namespace shard::cost {

/// Peaks of arithmetic other than products: additions and multiplications come singly rather than fused, and exp, tanh,
/// division and root, counted as one, take several instructions each. Such operators are bound by bytes on any device
/// of the examples but the CPU.
inline constexpr double kElementwiseEfficiency = 0.1;

struct Rates {
  FlopsPerSecond matrix;
  FlopsPerSecond attention;
  FlopsPerSecond elementwise;
  BytesPerSecond memory;
  Seconds launch;
};

/// A cuda device is divided evenly among its r ranks. On a cpu of c cores a rank computes with min(threads, c / r)
/// cores; memory bandwidth is divided by r.
[[nodiscard]] Rates rates(const cluster::Cluster& cluster, const cluster::Layout& layout, std::int32_t threads);

}  // namespace shard::cost
