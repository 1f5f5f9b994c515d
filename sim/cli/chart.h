// Small pictures for a terminal: a bar, a sparkline, and a stacked area (memory over a step, by category).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/output.h"
#include "sim/cli/screen.h"

namespace shard::cli {

/// "[#######-----]": `fraction` (0 to 1) of `width` characters between the brackets.
[[nodiscard]] std::string bar(double fraction, int width, const Style& style);

/// One character per column, height by value between 0 and the largest; each column shows the largest of its values,
/// so that a peak is never lost. Not longer than `values`.
[[nodiscard]] std::string sparkline(std::span<const double> values, int width, const Style& style);

/// One band of a stacked area. All layers of a picture have equally many values, none negative.
struct Layer {
  std::string name;
  char letter;  ///< its own in every picture, so that one letter means one thing; no two layers' are equal
  std::vector<double> values;
};

struct AreaOptions {
  int width = 72;   ///< columns of the picture itself
  int height = 12;  ///< rows of the picture itself
  /// How a value is printed on the axis and in the legend ("128.0 MiB").
  std::function<std::string(double)> show = {};
  /// Words under the picture at a fraction of its width: {0.0, "forward"}, {0.4, "backward"}.
  std::vector<std::pair<double, std::string>> marks = {};
};

/// The layers stacked, the first at the bottom, over their common index; a column shows the moment of the largest total
/// that falls into it. Bands are coloured blocks, or without colour their letters. The legend
/// lists the layers' values at the peak, top first. Layers that are zero throughout are left out. Ends in a newline;
/// empty when there is nothing to draw.
[[nodiscard]] Styled stacked_area(std::span<const Layer> layers, const AreaOptions& options, const Style& style);

}  // namespace shard::cli
