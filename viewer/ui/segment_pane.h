// The allocator's segments at the marker, else at the peak: every one a bar with its blocks and gaps, and in words what
// they cost.
#pragma once

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// A click on a block selects it.
void draw_segments(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area);

/// Does the first document tell of any?
[[nodiscard]] bool has_segments(const Session& session);

}  // namespace shard::view
