// Sums over the rows of a matrix, cut by columns: no workspace, and an order that only the shape fixes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/store.h"

namespace shard::cpu {

/// Columns of one task: 512 bytes of each row.
inline constexpr std::int64_t kStrip = 128;
/// Rows summed by themselves before they join the total: rounding grows with T / 32 + 32 instead of T.
inline constexpr std::int64_t kRowBlock = 32;

/// out[c] = (or +=) total[c] for c in [0, width).
template <class T>
SHARD_INLINE void store_strip(std::int64_t width, const float* total, T* out, Store store) {
  if (store == Store::add) {
    for (std::int64_t c = 0; c < width; ++c) out[c] = from_f32<T>(to_f32(out[c]) + total[c]);
  } else {
    for (std::int64_t c = 0; c < width; ++c) out[c] = from_f32<T>(total[c]);
  }
}

/// Calls fn(first_column, width) for strips of kStrip columns.
template <class F>
void run_strips(ThreadPool& pool, std::int64_t columns, const F& fn) {
  run_ranges(pool, columns, fn, kStrip);
}

}  // namespace shard::cpu
