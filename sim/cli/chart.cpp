// Draws bars, sparklines and stacked areas out of characters.
#include "sim/cli/chart.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace shard::cli {
namespace {

// 256-colour numbers that stay apart for the common colour deficiencies, after Okabe and Ito's palette, brown and grey.
constexpr std::array<int, 10> kColors{33, 214, 36, 227, 26, 166, 175, 250, 94, 240};

Styled colored(int color, std::string_view text) {
  return Styled().add_color(color).add(text).add(Mark::plain);
}

/// The first index of column `column` of `width` over `count` values; width == count or less repeats none.
std::size_t first_of(std::size_t column, std::size_t width, std::size_t count) {
  return column * count / width;
}

/// The layers that have anything to show, and their sum.
struct Stack {
  std::vector<const Layer*> layers;
  std::vector<int> colors;  ///< by place among all layers, so that a name keeps its colour from picture to picture
  std::vector<double> totals;
  std::size_t peak = 0;

  /// The moment that each of `width` columns shows: of all that fall into it, the one with the largest total.
  [[nodiscard]] std::vector<std::size_t> moments(std::size_t width) const {
    std::vector<std::size_t> result;
    for (std::size_t c = 0; c < width; ++c) {
      const std::size_t first = first_of(c, width, totals.size());
      const std::size_t last = std::max(first + 1, first_of(c + 1, width, totals.size()));
      std::size_t best = first;
      for (std::size_t i = first; i < last; ++i) {
        if (totals[i] > totals[best]) best = i;
      }
      result.push_back(best);
    }
    return result;
  }

  /// `cells` columns of one band.
  [[nodiscard]] Styled band(std::size_t layer, std::size_t cells, const Style& style) const {
    if (!style.color) return std::string(cells, layers[layer]->letter);
    std::string blocks;
    for (std::size_t i = 0; i < cells; ++i) blocks += style.unicode ? "█" : "#";
    return colored(colors[layer], blocks);
  }

  /// Which band covers `level` at a moment; layers.size() above them all.
  [[nodiscard]] std::size_t layer_at(std::size_t moment, double level) const {
    double sum = 0;
    std::size_t layer = 0;
    while (layer < layers.size() && (sum += layers[layer]->values[moment]) <= level) ++layer;
    return layer;
  }

  /// One line of the picture, without blanks at its end.
  [[nodiscard]] Styled row(std::span<const std::size_t> moments, double level, const Style& style) const {
    Styled text;
    std::size_t blanks = 0;
    for (std::size_t c = 0; c < moments.size();) {
      const std::size_t layer = layer_at(moments[c], level);
      std::size_t end = c + 1;
      while (end < moments.size() && layer_at(moments[end], level) == layer) ++end;
      if (layer == layers.size()) {
        blanks += end - c;
      } else {
        text.add(std::string(blanks, ' ')).add(band(layer, end - c, style));
        blanks = 0;
      }
      c = end;
    }
    return text;
  }
};

Stack stacked(std::span<const Layer> layers) {
  Stack stack;
  for (const Layer& layer : layers) {
    assert(layer.values.size() == layers[0].values.size());
    assert(std::ranges::count(layers, layer.letter, &Layer::letter) == 1);
    if (std::ranges::none_of(layer.values, [](double value) { return value > 0; })) continue;
    stack.layers.push_back(&layer);
    stack.colors.push_back(kColors.at(static_cast<std::size_t>(&layer - layers.data()) % kColors.size()));
  }
  if (stack.layers.empty()) return stack;
  stack.totals.resize(stack.layers[0]->values.size());
  for (const Layer* layer : stack.layers)
    for (std::size_t i = 0; i < stack.totals.size(); ++i) stack.totals[i] += layer->values[i];
  stack.peak = static_cast<std::size_t>(std::ranges::max_element(stack.totals) - stack.totals.begin());
  return stack;
}

}  // namespace

std::string bar(double fraction, int width, const Style& style) {
  const auto cells = static_cast<std::size_t>(std::max(width, 0));
  const auto full = static_cast<std::size_t>(std::lround(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(cells)));
  std::string text = "[";
  for (std::size_t i = 0; i < cells; ++i) text += i < full ? (style.unicode ? "█" : "#") : (style.unicode ? "░" : "-");
  return text + "]";
}

std::string sparkline(std::span<const double> values, int width, const Style& style) {
  constexpr std::array<const char*, 9> kBlocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<const char*, 9> kPlain{" ", ".", ":", "-", "=", "+", "*", "%", "#"};
  if (values.empty() || width < 1) return "";
  const double largest = *std::ranges::max_element(values);
  const std::size_t columns = std::min(static_cast<std::size_t>(width), values.size());
  std::string text;
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t first = first_of(c, columns, values.size());
    const std::size_t last = first_of(c + 1, columns, values.size());
    const double value = *std::max_element(values.begin() + static_cast<std::ptrdiff_t>(first),
                                           values.begin() + static_cast<std::ptrdiff_t>(last));
    // Anything above zero is visible; only the largest reaches the top.
    const auto level = largest > 0 && value > 0 ? static_cast<std::size_t>(1 + std::floor(value / largest * 7)) : 0;
    text += style.unicode ? kBlocks.at(std::min<std::size_t>(level, 8)) : kPlain.at(std::min<std::size_t>(level, 8));
  }
  return text;
}

Styled stacked_area(std::span<const Layer> layers, const AreaOptions& options, const Style& style) {
  const Stack stack = stacked(layers);
  if (stack.layers.empty() || options.width < 1 || options.height < 1) return "";
  const auto width = static_cast<std::size_t>(options.width);
  const auto height = static_cast<std::size_t>(options.height);
  const auto show = [&options](double value) { return options.show ? options.show(value) : std::to_string(value); };
  const double highest = stack.totals[stack.peak];
  const std::string top = show(highest);
  const std::string middle = show(highest / 2);
  const std::size_t margin = std::max({top.size(), middle.size(), std::size_t{1}});
  const auto axis = [&](const std::string& label) {
    return std::string(margin - label.size(), ' ') + label + (style.unicode ? " │" : " |");
  };

  const std::vector<std::size_t> moments = stack.moments(width);
  Styled text;
  for (std::size_t r = 0; r < height; ++r) {
    const double level = (static_cast<double>(height - r) - 0.5) / static_cast<double>(height) * highest;
    text.add(axis(r == 0                          ? top
                  : height > 2 && r == height / 2 ? middle
                                                  : ""))
        .add(stack.row(moments, level, style))
        .add("\n");
  }
  text.add(std::string(margin - 1, ' ') + "0" + (style.unicode ? " └" : " +"));
  for (std::size_t c = 0; c < width; ++c) text.add(style.unicode ? "─" : "-");
  text.add("\n");
  const std::string indent(margin + 2, ' ');
  if (!options.marks.empty()) {
    std::string line;
    for (const auto& [fraction, word] : options.marks) {
      const auto at = static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width));
      if (!line.empty() && at <= line.size()) continue;  // no room: the earlier word stays
      line += std::string(at - line.size(), ' ') + word;
    }
    text.add(indent + line + "\n");
  }
  text.add(indent + "at the peak, " + top + ":\n");
  for (std::size_t layer = stack.layers.size(); layer-- > 0;)
    text.add(indent)
        .add(stack.band(layer, 1, style))
        .add(" " + stack.layers[layer]->name + ": " + show(stack.layers[layer]->values[stack.peak]) + "\n");
  return text;
}

}  // namespace shard::cli
