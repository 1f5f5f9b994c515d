// The ImGui context: fonts at the screen's density, style of the theme.
#pragma once

#include <memory>

#include "viewer/ui/frame.h"

struct ImGuiContext;

namespace shard::view {

/// Of the library that this was built with: "1.86".
[[nodiscard]] const char* imgui_version();

/// One ImGui context, made current; at most one at a time. No settings file is read or written.
class Context {
 public:
  explicit Context(float scale = 1);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  [[nodiscard]] const Fonts& fonts() const { return fonts_; }
  /// False where DejaVu Sans is not installed and ImGui's own font stands in.
  [[nodiscard]] bool has_font() const { return has_font_; }
  /// Widgets in the colours of the theme.
  void apply(const Theme& theme) const;

 private:
  ImGuiContext* context_;
  Fonts fonts_;
  bool has_font_ = false;
};

}  // namespace shard::view
