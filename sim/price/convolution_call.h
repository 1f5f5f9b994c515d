// Convolutions as the products that they come to.
#pragma once

#include <optional>

#include "sim/price/kernel_call.h"

namespace shard::price {

struct ConvolutionCall {
  std::int64_t m = 0, n = 0, k = 0;  ///< of one group
  std::int64_t groups = 1;
  double element_bytes = 4;
  double moved_bytes = 0;  ///< of input, weights and result
};

/// Whether its operator is one, with or without a law.
[[nodiscard]] bool is_convolution(const KernelCall& call);

/// Forward, or one of the two products of backward. None of another operator, and of pictures with few colours, whose
/// kernels are many times slower than their product.
[[nodiscard]] std::optional<ConvolutionCall> convolution_of(const KernelCall& call);

}  // namespace shard::price
