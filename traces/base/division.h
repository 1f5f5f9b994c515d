// Division of whole numbers that rounds up.
#pragma once

#include <concepts>

namespace shard {

/// Of numbers of at least 0 by one of at least 1, without overflow.
template <std::integral Number>
[[nodiscard]] constexpr Number divide_up(Number a, Number b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace shard
