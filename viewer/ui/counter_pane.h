// Counters over time: one strip each, highest and lowest of every pixel.
#pragma once

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

void draw_counters(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area);

/// Are there any, of the ranks shown?
[[nodiscard]] bool has_counters(const Session& session, const ViewState& state);

}  // namespace shard::view
