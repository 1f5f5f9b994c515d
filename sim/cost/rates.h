// What one rank reaches on its device: the data sheet's peaks, times reached shares, divided by who shares the device.
#pragma once

#include "sim/cluster/cluster.h"
#include "sim/target/target.h"
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

/// Of one device in products and attention. A precision that the description says nothing of is no faster than fp32.
[[nodiscard]] FlopsPerSecond product_peak(const cluster::Cluster& cluster, const plan::Target& target);

/// A cuda device is divided evenly among its r ranks. On a cpu of c cores a rank computes with min(threads, c / r)
/// cores; memory bandwidth is divided by r. Products and attention run at the precision's peak, the rest in fp32.
[[nodiscard]] Rates rates(const cluster::Cluster& cluster, const cluster::Layout& layout, const plan::Target& target);

}  // namespace shard::cost
