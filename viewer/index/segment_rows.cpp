// Tries scales until the rows suffice.
#include "viewer/index/segment_rows.h"

#include <algorithm>
#include <numeric>

namespace shard::view {
namespace {

constexpr double kNarrowest = 2;
constexpr double kCoarser = 1.06;
constexpr int kTries = 60;

/// One try: false where the rows do not suffice.
bool fill(const SegmentMap& map, const std::vector<std::size_t>& order, double width, std::int32_t most_rows,
          double apart, SegmentRows& rows) {
  rows.bars.clear();
  rows.left_out = 0;
  std::int32_t row = 0;
  double x = 0;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const PlacedSegment& segment = map.segments[order[n]];
    const double wanted = std::max(kNarrowest, static_cast<double>(segment.bytes) / rows.bytes_per_pixel);
    if (x > 0 && x + wanted > width) {
      ++row;
      x = 0;
    }
    std::int64_t at = 0;
    do {
      if (row >= most_rows) {
        rows.left_out = order.size() - n;
        rows.row_count = most_rows;
        return false;
      }
      const auto whole_row = static_cast<std::int64_t>(width * rows.bytes_per_pixel);
      const std::int64_t end =
          wanted <= width ? segment.bytes : std::min(segment.bytes, at + std::max<std::int64_t>(1, whole_row));
      const double x1 = std::min(width, x + std::max(kNarrowest, static_cast<double>(end - at) / rows.bytes_per_pixel));
      rows.bars.push_back({order[n], at, end, row, x, x1});
      at = end;
      x = x1 + apart;
      if (at < segment.bytes) {
        ++row;
        x = 0;
      }
    } while (at < segment.bytes);
  }
  rows.row_count = row + 1;
  return true;
}

}  // namespace

SegmentRows lay_out_segments(const SegmentMap& map, double width, std::int32_t most_rows, double apart) {
  SegmentRows rows;
  if (map.segments.empty() || width < kNarrowest || most_rows < 1) {
    rows.left_out = map.segments.size();
    return rows;
  }
  std::vector<std::size_t> order(map.segments.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return map.segments[i].bytes; });
  double total = 0;
  for (const PlacedSegment& segment : map.segments) total += static_cast<double>(segment.bytes);
  rows.bytes_per_pixel = std::max(1.0, total / (width * most_rows));
  for (int i = 0; i < kTries && !fill(map, order, width, most_rows, apart, rows); ++i) rows.bytes_per_pixel *= kCoarser;
  return rows;
}

std::size_t block_of(const PlacedSegment& segment, std::uint64_t address) {
  const auto after = std::ranges::upper_bound(segment.blocks, address, {}, &PlacedBlock::address);
  if (after == segment.blocks.begin()) return segment.blocks.size();
  const auto block = std::prev(after);
  const bool inside = address - block->address < static_cast<std::uint64_t>(block->bytes);
  return inside ? static_cast<std::size_t>(block - segment.blocks.begin()) : segment.blocks.size();
}

}  // namespace shard::view
