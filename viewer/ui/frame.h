// What every pane is given to draw one frame: where, in which colours and fonts, with which input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "viewer/ui/theme.h"

struct ImFont;

namespace shard::view {

/// Pixels; x1 and y1 are outside.
struct Rect {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  [[nodiscard]] float width() const { return x1 - x0; }
  [[nodiscard]] float height() const { return y1 - y0; }
  [[nodiscard]] bool contains(float x, float y) const { return x >= x0 && x < x1 && y >= y0 && y < y1; }
};

/// Where named things were drawn, for tests and scripts to click: "button:Fit", "lane:0/compute", "span:123".
struct Item {
  std::string name;
  Rect rect;
};
using Items = std::vector<Item>;

/// Keys that count while they are held; everything else comes as typed characters through ImGui.
struct HeldKeys {
  bool w = false, a = false, s = false, d = false;
  bool escape = false, enter = false;
};

struct Fonts {
  ImFont* body = nullptr;
  ImFont* small = nullptr;
  ImFont* bold = nullptr;
  float scale = 1;  ///< physical pixels per logical one
};

struct Frame {
  const Theme& theme;
  const Fonts& fonts;
  const HeldKeys& keys;
  double seconds = 0;      ///< since the last frame
  Items* items = nullptr;  ///< null: nobody asks

  /// `pixels` of a screen of ordinary density on this one.
  [[nodiscard]] float px(float pixels) const { return pixels * fonts.scale; }
  void name(std::string_view what, const Rect& rect) const {
    if (items != nullptr) items->push_back({std::string(what), rect});
  }
};

}  // namespace shard::view
