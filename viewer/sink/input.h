// What a user does in one frame, for sinks without a window.
#pragma once

#include <string>

#include "viewer/ui/frame.h"

namespace shard::view {

struct Input {
  float mouse_x = -1, mouse_y = -1;  ///< pixels; negative: not over the picture
  bool left = false, right = false, middle = false;
  float wheel = 0;  ///< positive: away from the user
  bool shift = false, control = false;
  HeldKeys keys;
  std::string typed;  ///< characters, UTF-8
};

}  // namespace shard::view
