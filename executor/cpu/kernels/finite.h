// Whether a range of elements has no infinity and no NaN, as wide as the processor's vectors are.
#pragma once

#include <cstdint>

#include "executor/numeric/half.h"

namespace shard::cpu {

/// Of n elements, on the calling thread.
[[nodiscard]] bool finite_range(std::int64_t n, const float* x);
[[nodiscard]] bool finite_range(std::int64_t n, const Bf16* x);
[[nodiscard]] bool finite_range(std::int64_t n, const F16* x);

}  // namespace shard::cpu
