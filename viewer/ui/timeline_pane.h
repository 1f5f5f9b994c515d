// Lanes of every rank and stream: nested spans, names where they fit, exact busy shares where they do not.
#pragma once

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// With several documents the lanes of one rank and stream lie above each other.
void draw_timeline(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area);

/// Pixels that all lanes take, heading included.
[[nodiscard]] float timeline_height(const Session& session, const ViewState& state, const Frame& frame);

}  // namespace shard::view
