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

// 256-colour numbers that stay apart for the common colour deficiencies, after Okabe and Ito's palette, and brown.
constexpr std::array<int, 9> kColors{33, 214, 36, 227, 26, 166, 175, 250, 94};

std::string colored(int color, std::string_view text) {
  return "\033[38;5;" + std::to_string(color) + "m" + std::string(text) + "\033[0m";
}

/// The first index of column `column` of `width` over `count` values; width == count or less repeats none.
std::size_t first_of(std::size_t column, std::size_t width, std::size_t count) {
  return column * count / width;
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

std::string stacked_area(std::span<const Layer> layers, const AreaOptions& options, const Style& style) {
  std::vector<const Layer*> drawn;
  std::vector<int> colors;  // by place among all layers, so that a name keeps its colour from picture to picture
  for (const Layer& layer : layers) {
    assert(layer.values.size() == layers[0].values.size());
    assert(std::ranges::count(layers, layer.letter, &Layer::letter) == 1);
    if (std::ranges::none_of(layer.values, [](double value) { return value > 0; })) continue;
    drawn.push_back(&layer);
    colors.push_back(kColors.at(static_cast<std::size_t>(&layer - layers.data()) % kColors.size()));
  }
  if (drawn.empty() || options.width < 1 || options.height < 1) return "";
  const std::size_t count = drawn[0]->values.size();
  const auto width = static_cast<std::size_t>(options.width);
  const auto height = static_cast<std::size_t>(options.height);

  std::vector<double> totals(count, 0.0);
  for (const Layer* layer : drawn) {
    for (std::size_t i = 0; i < count; ++i) totals[i] += layer->values[i];
  }
  const auto peak = static_cast<std::size_t>(std::ranges::max_element(totals) - totals.begin());

  // The moment each column shows: of all that fall into it, the one with the largest total.
  std::vector<std::size_t> moments;
  for (std::size_t c = 0; c < width; ++c) {
    const std::size_t first = first_of(c, width, count);
    const std::size_t last = std::max(first + 1, first_of(c + 1, width, count));
    std::size_t best = first;
    for (std::size_t i = first; i < last; ++i) {
      if (totals[i] > totals[best]) best = i;
    }
    moments.push_back(best);
  }

  const auto show = [&options](double value) { return options.show ? options.show(value) : std::to_string(value); };
  // `cells` columns of one band.
  const auto band = [&](std::size_t layer, std::size_t cells) {
    if (!style.color) return std::string(cells, drawn[layer]->letter);
    std::string blocks;
    for (std::size_t i = 0; i < cells; ++i) blocks += style.unicode ? "█" : "#";
    return colored(colors[layer], blocks);
  };
  const std::string top = show(totals[peak]);
  const std::string middle = show(totals[peak] / 2);
  const std::size_t margin = std::max({top.size(), middle.size(), std::size_t{1}});
  const auto axis = [&](const std::string& label) {
    return std::string(margin - label.size(), ' ') + label + (style.unicode ? " │" : " |");
  };

  // Which band covers `level` at a moment; drawn.size() above them all.
  const auto layer_at = [&](std::size_t moment, double level) {
    double sum = 0;
    std::size_t layer = 0;
    while (layer < drawn.size() && (sum += drawn[layer]->values[moment]) <= level) ++layer;
    return layer;
  };

  std::string text;
  for (std::size_t r = 0; r < height; ++r) {
    const double level = (static_cast<double>(height - r) - 0.5) / static_cast<double>(height) * totals[peak];
    std::string row;
    std::size_t blanks = 0;
    for (std::size_t c = 0; c < width;) {
      const std::size_t layer = layer_at(moments[c], level);
      std::size_t end = c + 1;
      while (end < width && layer_at(moments[end], level) == layer) ++end;
      if (layer == drawn.size()) {
        blanks += end - c;
      } else {
        row += std::string(blanks, ' ') + band(layer, end - c);
        blanks = 0;
      }
      c = end;
    }
    text += axis(r == 0 ? top : height > 2 && r == height / 2 ? middle : "") + row + "\n";
  }
  text += std::string(margin - 1, ' ') + "0" + (style.unicode ? " └" : " +");
  for (std::size_t c = 0; c < width; ++c) text += style.unicode ? "─" : "-";
  text += "\n";
  if (!options.marks.empty()) {
    std::string line;
    for (const auto& [fraction, word] : options.marks) {
      const auto at = static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width));
      if (!line.empty() && at <= line.size()) continue;  // no room: the earlier word stays
      line += std::string(at - line.size(), ' ') + word;
    }
    text += std::string(margin + 2, ' ') + line + "\n";
  }
  text += std::string(margin + 2, ' ') + "at the peak, " + top + ":\n";
  for (std::size_t layer = drawn.size(); layer-- > 0;) {
    text += std::string(margin + 2, ' ') + band(layer, 1) + " " + drawn[layer]->name + ": " +
            show(drawn[layer]->values[peak]) + "\n";
  }
  return text;
}

}  // namespace shard::cli
