// Matrix products of the emulated device.
#pragma once

#include <cstdint>

#include "executor/cuda/api/api.h"

namespace shard::cuda::emulated {

/// Bytes of each operand; 0 where the shape has none.
struct ProductBytes {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t bias = 0;
  std::int64_t c = 0;
};
[[nodiscard]] ProductBytes product_bytes(const ProductShape& shape);

/// Operands that can be followed. Each element is one sum over k in ascending order, in fp32 and without fused
/// multiply-adds; then C is added where asked for, then the bias, and the result is rounded once.
void compute_product(const ProductShape& shape, const ProductOperands& operands);

}  // namespace shard::cuda::emulated
