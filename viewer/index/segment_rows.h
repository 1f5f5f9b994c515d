// Segments of an allocator as bars in rows, like words on lines: the largest first, all at one scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/fragmentation.h"

namespace shard::view {

/// A segment, or a part of one that is longer than a row.
struct SegmentBar {
  std::size_t segment = 0;                      ///< its place in the map
  std::int64_t begin_bytes = 0, end_bytes = 0;  ///< of the segment
  std::int32_t row = 0;
  double x0 = 0, x1 = 0;  ///< pixels
};

struct SegmentRows {
  std::vector<SegmentBar> bars;  ///< by row, then from the left
  std::int32_t row_count = 0;
  double bytes_per_pixel = 1;
  std::size_t left_out = 0;  ///< segments for which there is no room
};

/// Lays all of them out in at most `most_rows` rows `width` pixels wide, as large as they can be; `apart` pixels lie
/// between two. None is narrower than two pixels, so where there are very many the smallest are left out.
[[nodiscard]] SegmentRows lay_out_segments(const SegmentMap& map, double width, std::int32_t most_rows, double apart);

/// What lies at an address of a segment: a place in its blocks, or their count: a gap.
[[nodiscard]] std::size_t block_of(const PlacedSegment& segment, std::uint64_t address);

}  // namespace shard::view
