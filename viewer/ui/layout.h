// Where each pane goes.
#pragma once

#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// Rectangles of one frame; a pane that is not shown has no height.
struct Layout {
  Rect toolbar, problems, minimap, ruler, timeline, memory, chunks, counters, segments, side, status;
};

/// `lanes` is the height that the lanes need: less room is taken where they need less than their share.
[[nodiscard]] Layout lay_out(const Rect& whole, const Session& session, const ViewState& state, const Frame& frame,
                             float lanes);

}  // namespace shard::view
