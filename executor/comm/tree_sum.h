// The one order in which ranks' values are summed: a complete binary tree over the rank index, neighbours first.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shard {

/// Ranks in the left subtree of a tree over `ranks` >= 2 leaves: the largest power of two below `ranks`. This is the
/// same tree as pairing neighbours level by level and carrying the odd one out of each level up unchanged.
[[nodiscard]] constexpr std::size_t left_subtree(std::size_t ranks) {
  return std::bit_floor(ranks - 1);
}

/// out[i] = tree over k of sources[k][i], i < count; every node rounded to fp32. `out` may be one of the sources, and
/// must not overlap one otherwise. Bitwise the same for any cut of the range. Needs at least one source.
void tree_sum(std::span<const float* const> sources, float* out, std::int64_t count);

}  // namespace shard
