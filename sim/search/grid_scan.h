// Visits, of a grid of chunk sizes, only those at which the number of chunks changes.
#pragma once

#include <cstdint>

#include "sim/chunk/next_fit.h"

namespace shard {

/// Sizes first, first + step, ..., first + (count - 1) * step. count >= 1, first >= 1, step >= 1.
struct SizeGrid {
  std::int64_t first = 1;
  std::int64_t step = 1;
  std::int64_t count = 1;

  [[nodiscard]] std::int64_t at(std::int64_t index) const { return first + index * step; }
};

/// visit(size, tally) for the grid's first size and for each whose tally differs from that of the size before it,
/// ascending. Requires what NextFit promises: chunk counts never rise with the size (sizes that are multiples of the
/// world size, or no parameter larger than grid.first).
///
/// Why that suffices to find the least waste: between two visited sizes the tally is constant, so
/// capacity = uniform_chunks * size + oversize_elems does not fall, and the first size of the stretch is the best of
/// it.
template <class Visit>
void for_each_tally(const NextFit& fit, const SizeGrid& grid, Visit&& visit) {
  std::int64_t index = 0;
  while (index < grid.count) {
    const NextFitTally tally = fit.tally(grid.at(index));
    visit(grid.at(index), tally);
    // Doubling steps, then bisection: low has this tally, high (if on the grid) has another.
    std::int64_t low = index;
    std::int64_t stride = 1;
    while (low + stride < grid.count && fit.tally(grid.at(low + stride)) == tally) {
      low += stride;
      stride *= 2;
    }
    std::int64_t high = low + stride < grid.count ? low + stride : grid.count;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fit.tally(grid.at(middle)) == tally ? low : high) = middle;
    }
    index = high;
  }
}

}  // namespace shard
