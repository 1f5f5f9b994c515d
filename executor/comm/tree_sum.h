// The one order in which ranks' values are summed: a complete binary tree over the member index, neighbours first.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "traces/base/dtype.h"

namespace shard {

/// Ranks in the left subtree of a tree over `ranks` >= 2 leaves: the largest power of two below `ranks`. This is the
/// same tree as pairing neighbours level by level and carrying the odd one out of each level up unchanged.
[[nodiscard]] constexpr std::size_t left_subtree(std::size_t ranks) {
  return std::bit_floor(ranks - 1);
}

/// Element types that can be summed: the floats, and i64. The sum of i32 might not fit its type.
[[nodiscard]] constexpr bool is_summable(Dtype dtype) {
  return dtype != Dtype::i32;
}

/// out[i] = tree over k of sources[k][i], i < count elements of a summable `dtype`, all aligned to it. Every node is
/// computed in fp32 and rounded to `dtype`; i64 is exact (modulo 2^64). `out` may be one of the sources, and must not
/// overlap one otherwise. Bitwise the same for any cut of the range. Needs at least one source.
void tree_sum(Dtype dtype, std::span<const std::byte* const> sources, std::byte* out, std::int64_t count);

}  // namespace shard
