// Division that rounds up, as kernels' grids are counted.
#pragma once

#include <cstdint>

namespace shard::like::eager {

/// `b` is positive.
[[nodiscard]] constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace shard::like::eager
