// Of a grid of chunk sizes, those whose chunks have the fewest elements together: branch and bound, not size by size.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/chunk/next_fit.h"

namespace shard {

/// Sizes first, first + step, ..., first + (count - 1) * step. count >= 1, first >= 1, step >= 1.
struct SizeGrid {
  std::int64_t first = 1;
  std::int64_t step = 1;
  std::int64_t count = 1;

  [[nodiscard]] std::int64_t at(std::int64_t index) const { return first + index * step; }
};

struct LeastCapacity {
  std::int64_t capacity = 0;        ///< of all chunks together; waste = capacity - total
  std::vector<std::int64_t> sizes;  ///< ascending; see least_capacity
  std::int64_t tallies = 0;         ///< layouts counted on the way
};

/// The least capacity on the grid, and every size that has it, except sizes that make the same chunks as a smaller one
/// (possible only where all chunks are oversize).
///
/// Requires what NextFit promises: the number of chunks and that of oversize chunks never rise with the size (sizes
/// that are multiples of the world size, or no parameter larger than grid.first). Then, for sizes a < b,
///   - equal tallies at a and b are those of all sizes between, and their capacity does not fall from a on;
///   - any size c with a < c < b has at least the chunks of b; those oversize at b are so at c, the others have c
///     elements or more: capacity(c) >= uniform_chunks(b) * (a + step) + oversize_elems(b).
/// An interval is left when either shows that it holds no better size, and halved otherwise.
[[nodiscard]] LeastCapacity least_capacity(const NextFit& fit, const SizeGrid& grid);

}  // namespace shard
