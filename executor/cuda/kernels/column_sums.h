// Sums over the rows of a matrix by strips of columns, in an order that only the shape decides; included by kernels.
#pragma once

#include <cstdint>

#include "executor/cuda/kernels/device.h"
#include "executor/kernels/store.h"
#include "executor/numeric/half.h"

namespace shard::cuda {

// A block takes kStripColumns columns. Its threads form slots of as many threads as columns; slot s sums rows s,
// s + slots, ... in order, and then the first slot adds the slots' sums in order: no workspace, no atomics.

inline constexpr std::uint32_t kStripColumns = 16;  ///< a sector of 32 bytes of each row in 16 bits
inline constexpr std::int64_t kMostSlots = 32;
inline constexpr std::int64_t kRowsOfSlot = 8;  ///< at least, so that few rows take few threads

[[nodiscard]] constexpr std::uint32_t slots_of(std::int64_t rows) {
  std::int64_t slots = kWarp / kStripColumns;
  while (slots < kMostSlots && slots * kRowsOfSlot < rows) slots *= 2;
  return static_cast<std::uint32_t>(slots);
}

/// A launch for `sums` sums over the rows of `columns` columns.
[[nodiscard]] constexpr Launch column_launch(std::int64_t rows, std::int64_t columns, std::uint32_t sums) {
  const std::uint32_t threads = slots_of(rows) * kStripColumns;
  return {.blocks_x = static_cast<std::uint32_t>((columns + kStripColumns - 1) / kStripColumns),
          .threads = threads,
          .shared_bytes = threads * sums * static_cast<std::uint32_t>(sizeof(float))};
}

/// This thread's column; those from the number of columns on do not exist.
SHARD_DEVICE std::int64_t strip_column() {
  return static_cast<std::int64_t>(blockIdx.x) * kStripColumns + threadIdx.x % kStripColumns;
}
SHARD_DEVICE std::int64_t first_row() {
  return threadIdx.x / kStripColumns;
}
SHARD_DEVICE std::int64_t row_stride() {
  return blockDim.x / kStripColumns;
}

/// In the first slot: the sum over the slots that have written their threads' sums to `sums`, behind a barrier.
SHARD_DEVICE float sum_slots(const float* sums) {
  float total = sums[threadIdx.x];
  for (std::uint32_t at = threadIdx.x + kStripColumns; at < blockDim.x; at += kStripColumns) total = total + sums[at];
  return total;
}

template <class T>
SHARD_DEVICE void store_sum(float total, Store store, T* out) {
  *out = from_f32<T>(store == Store::add ? to_f32(*out) + total : total);
}

}  // namespace shard::cuda
