// Stacked columns.
#include "viewer/ui/memory_stack.h"

#include <algorithm>
#include <cmath>

#include "viewer/index/ticks.h"

namespace shard::view {
namespace {

/// Stretches shorter than this many pixels, one after the other, are dense.
constexpr std::size_t kDenseColumns = 4;

}  // namespace

void draw_memory_stack(const Canvas& canvas, const ByteAxis& axis, const std::vector<MemoryColumn>& columns,
                       const Theme& theme) {
  for (std::size_t i = 0; i < columns.size();) {
    const MemoryColumn& column = columns[i];
    std::size_t end = i + 1;
    while (end < columns.size() && columns[end].at_highest_bytes == column.at_highest_bytes &&
           columns[end].lowest_bytes == column.lowest_bytes)
      ++end;
    const float x0 = axis.plot.x0 + static_cast<float>(i);
    const float x1 = axis.plot.x0 + static_cast<float>(end);
    std::int64_t sum = 0;
    float bottom = axis.y(0);
    for (std::size_t c = 0; c < kCategoryCount; ++c) {
      const std::int64_t bytes = column.at_highest_bytes[c];
      if (bytes <= 0) continue;
      sum += bytes;
      const float top = axis.y(static_cast<double>(sum));
      canvas.fill({x0, top, x1, bottom}, theme.category[c]);
      bottom = top;
    }
    if (column.lowest_bytes < column.highest_bytes) {
      const float low = axis.y(static_cast<double>(std::max<std::int64_t>(0, column.lowest_bytes)));
      if (low - bottom > 0.5F) canvas.fill({x0, bottom, x1, low}, with_alpha(theme.pane, 70));
    }
    i = end;
  }
}

void draw_memory_outline(const Canvas& canvas, const ByteAxis& axis, const std::vector<MemoryColumn>& columns,
                         Color color, float thickness) {
  float previous = -1;
  std::size_t previous_length = 0;
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t end = i + 1;
    while (end < columns.size() && columns[end].highest_bytes == columns[i].highest_bytes) ++end;
    const float x0 = axis.plot.x0 + static_cast<float>(i);
    const float x1 = axis.plot.x0 + static_cast<float>(end);
    const float y = std::round(axis.y(static_cast<double>(columns[i].highest_bytes)));
    canvas.fill({x0, y - thickness / 2, x1, y + thickness / 2}, color);
    if (previous >= 0 && std::fabs(previous - y) > thickness) {
      // Where the total goes up and down from pixel to pixel thick strokes would hide what they are drawn over.
      const bool dense = std::max(previous_length, end - i) < kDenseColumns;
      const float half = dense ? 0.5F : thickness / 2;
      canvas.fill({x0 - half, std::min(previous, y), x0 + half, std::max(previous, y)}, color);
    }
    previous = y;
    previous_length = end - i;
    i = end;
  }
}

void draw_byte_grid(const Canvas& canvas, const ByteAxis& axis, const Frame& frame) {
  for (const Tick& tick : byte_ticks(static_cast<std::int64_t>(axis.low_bytes),
                                     static_cast<std::int64_t>(axis.top_bytes), axis.plot.height(), frame.px(30)))
    canvas.horizontal(axis.plot.x0, axis.plot.x1, axis.plot.y1 - static_cast<float>(tick.position), frame.theme.grid);
}

}  // namespace shard::view
