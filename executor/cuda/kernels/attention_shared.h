// How large attention's tiles are, and how much shared memory a block of it takes: for its kernels, and for who asks
// beforehand.
#pragma once

#include <cstdint>

#include "executor/kernels/shapes.h"

namespace shard::cuda {

/// Queries and keys of a tile. Short sequences waste less in small tiles; wide heads would not fit with large ones.
[[nodiscard]] constexpr int attention_tile(const AttentionShape& shape) {
  if (shape.head_dim > 128) return 32;
  return shape.head_dim > 64 || shape.sequence > 32 ? 64 : 32;
}

namespace attention_shared {
constexpr std::int64_t kLine = 4;  ///< floats that each line of a tile is longer, which keeps threads out of one bank
/// Of a tile's rows of a head, floats.
constexpr std::int64_t panel(const AttentionShape& shape) {
  return (shape.head_dim + 3) / 4 * 4 * (attention_tile(shape) + kLine);
}
/// Of a tile of scores, floats.
constexpr std::int64_t square(const AttentionShape& shape) {
  return attention_tile(shape) * (attention_tile(shape) + kLine);
}
/// Of what is dropped, bytes.
constexpr std::int64_t mask(const AttentionShape& shape) {
  return std::int64_t{8} * attention_tile(shape);
}
}  // namespace attention_shared

/// Bytes of a block; the layouts are Shared of attention.cu and of attention_backward.cu.
[[nodiscard]] constexpr std::int64_t attention_forward_shared(const AttentionShape& shape) {
  const std::int64_t tile = attention_tile(shape);
  const std::int64_t threads = tile / 4 * (tile / 4);
  return 4 * (2 * attention_shared::panel(shape) + attention_shared::square(shape) + threads + tile) +
         attention_shared::mask(shape);
}
[[nodiscard]] constexpr std::int64_t attention_backward_shared(const AttentionShape& shape) {
  return 4 * (3 * attention_shared::panel(shape) + 2 * attention_shared::square(shape)) + attention_shared::mask(shape);
}

}  // namespace shard::cuda
