// How fast a device multiplies matrices, by shape and type, and what kernels that only move data reach.
#pragma once

#include <array>
#include <span>

#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/measure/measurement.h"
#include "executor/cuda/measure/stopwatch.h"

namespace shard::cuda {

struct ProductSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// The best over all shapes, flops a second.
struct ProductRates {
  double f32 = 0;
  double tf32 = 0;
  double bf16 = 0;
  double f16 = 0;
  Bytes library_memory{};  ///< of the device: what the library took when it was first asked
};

/// One figure for each shape and type. `workspace`: what a product may use. `least`: as Stopwatch::seconds. Errors: of
/// the device.
[[nodiscard]] Result<ProductRates> measure_products(Api& api, std::span<const ProductSize> sizes, Bytes workspace,
                                                    double least, Measurements& into);

/// Bytes a second of kernels over fp32 arrays of `bytes` each: the best of them.
[[nodiscard]] Result<double> measure_bandwidth(Api& api, const Kernels& kernels, Bytes bytes, double least,
                                               Measurements& into);

}  // namespace shard::cuda
