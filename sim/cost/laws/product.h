// Time of a matrix product on a GPU: tiles, waves, a ramp of k, memory, a floor.
#pragma once

#include <cstdint>

#include "sim/cluster/cluster.h"
#include "traces/base/units.h"

namespace shard::cost {

/// (m, k) x (k, n).
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  double operand_bytes = 2;  ///< of an element of the operands
  double result_bytes = 2;
  double speed = 1;  ///< beside 16 bits: what tensor cores reach of their own peak in fewer bits
};

/// The best over tiles (a x b) from 256 x 128 to 32 x 64 and over splits s of k in 1, 2, 4, 8, on S multiprocessors:
///   w = ceil(m / a) ceil(n / b) s / S              waves
///   t = (q ceil(w) + (1 - q) max(w, 1)) 2 a b (k / s + r) / (P / S / (1 + c (1 / a + 1 / b - 1 / 256 - 1 / 128)))
///       + what splits write and read again
/// and at least what memory takes, behind a floor. q, r, c, the share of the peak in P and of the bandwidth:
/// ProductLaw. Measured error: MODELS.md#laws-of-kernels.
[[nodiscard]] Seconds product_time(const ProductShape& shape, const cluster::ProductLaw& law,
                                   const cluster::Cluster& card);

/// Of `batch` products without tensor cores: neither waves nor the ramp of k matter as much. Tiles of 64, k in eights,
/// at 0.8 of the peak of fp32, of fp64 half of that, behind the law's floor. `card` has kernel_laws.
[[nodiscard]] Seconds vector_product_time(double batch, const ProductShape& shape, const cluster::Cluster& card);

}  // namespace shard::cost
