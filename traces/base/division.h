// Division of whole numbers that rounds up.
#pragma once

#include <concepts>
#include <type_traits>

namespace shard {

/// Of numbers of at least 0 by one of at least 1, without overflow.
template <std::signed_integral A, std::signed_integral B>
[[nodiscard]] constexpr std::common_type_t<A, B> divide_up(A a, B b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace shard
