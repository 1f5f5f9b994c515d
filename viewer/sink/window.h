// A window with GLFW and OpenGL 3.
#pragma once

#include <functional>
#include <string>

#include "traces/base/result.h"
#include "viewer/ui/frame.h"

namespace shard::view {

struct WindowOptions {
  std::string title = "Shardscope";
  int width = 1600, height = 1000;  ///< screen coordinates
  ThemeName theme = ThemeName::dark;
  double scale = 0;  ///< of text and lines; 0: the screen's
};

/// What the content wants after a frame.
struct AfterFrame {
  ThemeName theme = ThemeName::dark;
  bool busy = false;  ///< something moves by itself (loading): draw again soon, without waiting for input
  bool close = false;
};

/// Was the viewer built with a window?
[[nodiscard]] bool has_window();

/// Makes run_window() draw again if it is waiting. From any thread; does nothing where no window is open.
void wake_window();

/// Opens a window and draws `content` until it is closed. Waits for events between frames, so an idle window costs
/// nothing. Errc::unavailable without a display, without OpenGL 3, or in a build without a window.
[[nodiscard]] Result<void> run_window(const WindowOptions& options,
                                      const std::function<AfterFrame(const Frame&)>& content);

}  // namespace shard::view
