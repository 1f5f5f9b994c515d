// Sums over the rows of a matrix by strips of columns, in an order that only the shape decides; included by kernels.
#pragma once

#include <cstdint>

#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/packs.h"
#include "executor/kernels/store.h"
#include "executor/numeric/half.h"

namespace shard::cuda {

// A block takes a strip of columns, two packs wide. Its threads form slots, a thread to each pack of a row; slot s sums
// rows s, s + slots, ... in order. Eight slots are then added in order, and so are the sums of eights: no workspace, no
// atomics, and enough loads under way that few blocks are enough.

inline constexpr std::uint32_t kStripPacks = 2;  ///< of 16 bits: a sector of 32 bytes of each row
inline constexpr std::uint32_t kStripColumns = kStripPacks * kPack;
inline constexpr std::uint32_t kSlotsAdded = kStripColumns / kStripPacks;  ///< so that each thread adds for a column
inline constexpr std::int64_t kMostSlots = 256;
inline constexpr std::int64_t kRowsOfSlot = 8;  ///< at least, so that few rows take few threads

[[nodiscard]] constexpr std::uint32_t slots_of(std::int64_t rows) {
  std::int64_t slots = kWarp / kStripPacks;
  while (slots < kMostSlots && slots * kRowsOfSlot < rows) slots *= 2;
  return static_cast<std::uint32_t>(slots);
}

/// A launch for `sums` sums over the rows of `columns` columns.
[[nodiscard]] constexpr Launch column_launch(std::int64_t rows, std::int64_t columns, std::uint32_t sums) {
  const std::uint32_t slots = slots_of(rows);
  const std::uint32_t floats = sums * kStripColumns * (slots + slots / kSlotsAdded);
  return {.blocks_x = static_cast<std::uint32_t>((columns + kStripColumns - 1) / kStripColumns),
          .threads = slots * kStripPacks,
          .shared_bytes = floats * static_cast<std::uint32_t>(sizeof(float))};
}

/// Where this thread's pack begins; columns from their number on do not exist.
SHARD_DEVICE std::int64_t strip_column() {
  return static_cast<std::int64_t>(blockIdx.x) * kStripColumns + threadIdx.x % kStripPacks * kPack;
}
SHARD_DEVICE std::int64_t first_row() {
  return threadIdx.x / kStripPacks;
}
SHARD_DEVICE std::int64_t row_stride() {
  return blockDim.x / kStripPacks;
}

/// Writes (or adds) the sums over all rows to out[0], ..., out[kSums - 1] [columns], unless null. `own`: of this
/// thread's rows and pack. All threads of a block call it, once.
template <int kSums, class T>
SHARD_DEVICE void store_column_sums(const float (&own)[kSums][kPack], std::int64_t columns, Store store,
                                    T* const (&out)[kSums]) {
  const std::uint32_t adders = blockDim.x / kStripColumns;
  const std::uint32_t at = threadIdx.x % kStripColumns;
  const std::uint32_t adder = threadIdx.x / kStripColumns;
  float* slots = shared<float>();                     // [sum][slot][column of the strip]
  float* added = slots + kSums * kPack * blockDim.x;  // [sum][adder][column]
  for (int s = 0; s < kSums; ++s)
    for (int k = 0; k < kPack; ++k) slots[(s * blockDim.x + threadIdx.x) * kPack + k] = own[s][k];
  __syncthreads();
  for (int s = 0; s < kSums; ++s) {
    const float* first = slots + s * kPack * blockDim.x + adder * kSlotsAdded * kStripColumns + at;
    float total = first[0];
    for (std::uint32_t slot = 1; slot < kSlotsAdded; ++slot) total = total + first[slot * kStripColumns];
    added[s * blockDim.x + threadIdx.x] = total;
  }
  __syncthreads();
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kStripColumns + at;
  if (adder != 0 || column >= columns) return;
  for (int s = 0; s < kSums; ++s) {
    if (out[s] == nullptr) continue;
    float total = added[s * blockDim.x + at];
    for (std::uint32_t a = 1; a < adders; ++a) total = total + added[s * blockDim.x + a * kStripColumns + at];
    T& element = out[s][column];
    element = from_f32<T>(store == Store::add ? to_f32(element) + total : total);
  }
}

}  // namespace shard::cuda
