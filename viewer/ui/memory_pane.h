// Memory over time, stacked by category; with several documents their totals over it and the difference below.
#pragma once

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// A click sets the marker, at which the table of live buffers looks.
void draw_memory(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area);

}  // namespace shard::view
