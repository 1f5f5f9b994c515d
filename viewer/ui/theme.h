// Colours: few, distinct, and the same for one meaning in every pane.
#pragma once

#include <array>
#include <cstdint>

#include "traces/base/ids.h"
#include "traces/event.h"
#include "viewer/index/chunk_map.h"
#include "viewer/index/memory_classes.h"
#include "viewer/index/span_class.h"

namespace shard::view {

/// Red in the low byte, alpha in the high one (ImGui's order).
using Color = std::uint32_t;

[[nodiscard]] constexpr Color rgb(std::uint32_t hex, std::uint32_t alpha = 255) {
  return ((hex >> 16U) & 0xFFU) | (hex & 0xFF00U) | ((hex & 0xFFU) << 16U) | (alpha << 24U);
}
/// The same colour, `alpha` (0 to 255) instead of its own.
[[nodiscard]] constexpr Color with_alpha(Color color, std::uint32_t alpha) {
  return (color & 0x00FFFFFFU) | (alpha << 24U);
}
/// `share` (0 to 1) of `a`, the rest `b`; opaque.
[[nodiscard]] Color mix(Color a, Color b, double share);
/// Black or white, whichever is easier to read on `background`.
[[nodiscard]] Color ink_on(Color background);

enum class ThemeName : std::uint8_t { dark, light };

struct Theme {
  ThemeName name = ThemeName::dark;
  Color background = 0;  ///< of the window
  Color pane = 0;        ///< of what is drawn into
  Color bar = 0;         ///< tool bar, gutters, headings
  Color grid = 0;        ///< lines behind data
  Color border = 0;      ///< lines between panes
  Color text = 0;
  Color dim = 0;  ///< less important text
  Color accent = 0;
  Color selection = 0;  ///< translucent, over data
  Color cursor = 0;
  Color good = 0;
  Color warning = 0;
  Color bad = 0;
  std::array<Color, kCategoryCount> category{};
  std::array<Color, kSpanClassCount> span_class{};
  std::array<Color, kMostClasses> site{};  ///< the largest sites, all others, and what has no stack
  std::array<Color, 8> series{};           ///< one for each trace, counter or class that has no colour of its own
  std::array<Color, kChunkClassCount> chunk{};
};

[[nodiscard]] const Theme& theme_of(ThemeName name);

}  // namespace shard::view
