// The mouse over a plot that shares the time axis: zoom, pan, range, hover, click.
#pragma once

#include <optional>

#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

struct PlotMouse {
  bool hovered = false;
  bool clicked = false;         ///< pressed and released without moving
  bool double_clicked = false;  ///< the second press
  float x = 0, y = 0;           ///< of the mouse, pixels of the screen
  float dragged_y = 0;          ///< since the last frame, while panning: for what also scrolls
  float wheel = 0;              ///< with control, which does not zoom the axis
};

/// Takes the mouse within `area` for the time axis of `state`. Call once for each plot and frame; `id` tells them
/// apart.
PlotMouse plot_mouse(const char* id, const Rect& area, const Session& session, ViewState& state, const Frame& frame);

/// After a double click that met nothing else: shows the selected range where the mouse is in it.
void zoom_to_range(const PlotMouse& mouse, ViewState& state);

/// W, A, S, D: zoom at the mouse where it is over the axis, else in the middle.
void move_by_keys(const Rect& axis, const Session& session, ViewState& state, const Frame& frame);

}  // namespace shard::view
