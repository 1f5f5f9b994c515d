// What is a number: neither infinite nor NaN, told by the bits alone.
#pragma once

#include <bit>
#include <cstdint>

#include "executor/numeric/half.h"
#include "executor/numeric/vectorise.h"

namespace shard {

template <class T>
[[nodiscard]] SHARD_INLINE bool is_finite(T value) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  return (std::bit_cast<std::uint32_t>(to_f32(value)) & kExponent) != kExponent;
}

/// Looks at all of them, whatever comes first: that is the loop that is vectorised.
template <class T>
[[nodiscard]] SHARD_INLINE bool are_finite(const T* values, std::int64_t n) {
  bool finite = true;
  for (std::int64_t i = 0; i < n; ++i) finite &= is_finite(values[i]);
  return finite;
}

/// The first that is not finite; n where all are.
template <class T>
[[nodiscard]] SHARD_INLINE std::int64_t first_not_finite(const T* values, std::int64_t n) {
  std::int64_t i = 0;
  while (i < n && is_finite(values[i])) ++i;
  return i;
}

}  // namespace shard
