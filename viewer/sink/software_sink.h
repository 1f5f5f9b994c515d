// Frames without a display: an ImGui context, its font texture, and the picture that the rasteriser fills.
#pragma once

#include <functional>

#include "viewer/sink/input.h"
#include "viewer/sink/software.h"
#include "viewer/ui/context.h"

namespace shard::view {

/// Draws one frame into the current ImGui frame.
using DrawFrame = std::function<void(const Frame& frame)>;

class SoftwareSink {
 public:
  /// `width` and `height` in pixels of the picture.
  SoftwareSink(int width, int height, float scale = 1);

  /// Runs one frame of 1/60 s: input, `draw`, ImGui's own layout. Returns the seconds it took to build. Draws no pixel.
  double build(ThemeName theme, const DrawFrame& draw, const Input& input = {}, Items* items = nullptr);
  /// Rasterises the frame last built into picture(); returns the seconds it took.
  double draw();

  [[nodiscard]] const Picture& picture() const { return picture_; }
  [[nodiscard]] bool has_font() const { return context_.has_font(); }

 private:
  Context context_;
  Texture atlas_;
  Picture picture_;
  ThemeName theme_ = ThemeName::dark;
  bool styled_ = false;
};

}  // namespace shard::view
