// The stacked area itself: columns of bytes by category.
#pragma once

#include <vector>

#include "viewer/index/memory.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/frame.h"

namespace shard::view {

/// A value axis: bytes from 0 at y1 to `top_bytes` at y0.
struct ByteAxis {
  Rect plot;
  double top_bytes = 1;
  double low_bytes = 0;  ///< at y1; below 0 for differences
  [[nodiscard]] double bytes_at(float y) const {
    return low_bytes + static_cast<double>(plot.y1 - y) / static_cast<double>(plot.height()) * (top_bytes - low_bytes);
  }
  [[nodiscard]] float y(double bytes) const {
    return plot.y1 - static_cast<float>((bytes - low_bytes) / (top_bytes - low_bytes)) * plot.height();
  }
};

/// Each column shows the stack at its highest moment; what is reached only for a part of the column is paler.
void draw_memory_stack(const Canvas& canvas, const ByteAxis& axis, const std::vector<MemoryColumn>& columns,
                       const Theme& theme);

/// The total as an outline, for another document over the stack.
void draw_memory_outline(const Canvas& canvas, const ByteAxis& axis, const std::vector<MemoryColumn>& columns,
                         Color color, float thickness);

/// Horizontal lines with sizes at the left edge of the plot.
void draw_byte_grid(const Canvas& canvas, const ByteAxis& axis, const Frame& frame);

}  // namespace shard::view
