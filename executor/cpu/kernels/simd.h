// Sums and maxima over fixed lanes: kLanes running sums combined in one fixed tree, the same on any instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include "executor/numeric/half.h"
#include "executor/numeric/vectorise.h"

namespace shard::cpu {

inline constexpr int kLanes = 16;

/// Elements of one elementwise task: 64 KiB of each buffer, enough to hide the hand-out, small enough to balance.
inline constexpr std::int64_t kElementwiseTask = 16384;

/// ((0+8)+(4+12)) + ((2+10)+(6+14)) + ...: the fixed tree over the lanes.
template <class T>
SHARD_INLINE T sum_lanes(const T (&lanes)[kLanes]) {
  T t[kLanes];
  for (int i = 0; i < kLanes; ++i) t[i] = lanes[i];
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) t[i] = t[i] + t[i + width];
  }
  return t[0];
}

SHARD_INLINE float max_lanes(const float (&lanes)[kLanes]) {
  float m = lanes[0];
  for (int i = 1; i < kLanes; ++i) m = lanes[i] > m ? lanes[i] : m;
  return m;
}

/// Sum of term(i) over i in [0, n): lane i % 16 adds its terms in order.
template <class T, class Term>
SHARD_INLINE T lane_sum(std::int64_t n, Term term) {
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    SHARD_ROLLED
    for (int l = 0; l < kLanes; ++l) lanes[l] = lanes[l] + term(i + l);
  }
  for (int l = 0; i + l < n; ++l) lanes[l] = lanes[l] + term(i + l);
  return sum_lanes(lanes);
}

/// Largest x[i]; NaN is passed over (the sum of exponentials that follows meets it). n >= 1.
template <class T>
SHARD_INLINE float lane_max(std::int64_t n, const T* x) {
  float lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = -__builtin_huge_valf();
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    SHARD_ROLLED
    for (int l = 0; l < kLanes; ++l) {
      const float v = to_f32(x[i + l]);
      lanes[l] = v > lanes[l] ? v : lanes[l];
    }
  }
  for (int l = 0; i + l < n; ++l) {
    const float v = to_f32(x[i + l]);
    lanes[l] = v > lanes[l] ? v : lanes[l];
  }
  return max_lanes(lanes);
}

}  // namespace shard::cpu
