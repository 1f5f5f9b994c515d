// A window over the panes, as help and the fields for text have.
#pragma once

#include <imgui.h>

#include "viewer/ui/frame.h"

namespace shard::view {

/// With a border and the ground of menus; what is drawn while it lives is in it.
struct Overlay {
  Overlay(const char* name, const Rect& box, const Frame& frame, ImGuiWindowFlags flags = 0);
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;
  ~Overlay();
};

}  // namespace shard::view
