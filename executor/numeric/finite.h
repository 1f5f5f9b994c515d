// What is a number: neither infinite nor NaN, told by the bits alone.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "executor/numeric/half.h"
#include "executor/numeric/vectorise.h"

namespace shard {

template <class T>
[[nodiscard]] SHARD_INLINE bool is_finite(T value) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  return (std::bit_cast<std::uint32_t>(to_f32(value)) & kExponent) != kExponent;
}

/// Looks at all of them, whatever comes first, for the largest exponent: that is a loop that is vectorised.
template <class T>
[[nodiscard]] SHARD_INLINE bool are_finite(const T* values, std::int64_t n) {
  if constexpr (sizeof(T) == 2) {
    constexpr std::uint16_t kExponent = std::is_same_v<T, F16> ? 0x7C00U : 0x7F80U;
    std::uint16_t largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto exponent = static_cast<std::uint16_t>(values[i].bits & kExponent);
      largest = exponent > largest ? exponent : largest;
    }
    return largest != kExponent;
  } else {
    bool finite = true;
    for (std::int64_t i = 0; i < n; ++i) finite &= is_finite(values[i]);
    return finite;
  }
}

/// The first that is not finite; n where all are.
template <class T>
[[nodiscard]] SHARD_INLINE std::int64_t first_not_finite(const T* values, std::int64_t n) {
  std::int64_t i = 0;
  while (i < n && is_finite(values[i])) ++i;
  return i;
}

}  // namespace shard
