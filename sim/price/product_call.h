// Products by the operator that asked for them, where nobody saw the library's own call.
#pragma once

#include <optional>

#include "sim/price/kernel_call.h"

namespace shard::price {

/// Of mm, addmm, bmm, baddbmm, linear and scaled products. None of another operator, and of the kernels that such an
/// operator runs beside its product.
[[nodiscard]] std::optional<ProductCall> product_of(const KernelCall& call);

}  // namespace shard::price
