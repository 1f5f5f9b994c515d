// The tables beside the timeline; each fills the current ImGui child window.
#pragma once

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// All that is known about the selected span, what it waits for and what waits for it; the selected chunk's history;
/// the trace itself where nothing is selected.
void draw_selection(const Session& session, ViewState& state, Derived& derived, const Frame& frame);

/// Buffers live at the marker, else at the peak, largest first.
void draw_live(const Session& session, ViewState& state, Derived& derived, const Frame& frame);

/// Spans and memory of the selected range, else of what is visible: by name, class, stream or rank.
void draw_statistics(const Session& session, ViewState& state, Derived& derived, const Frame& frame);

/// Where the first two documents differ most, in time or bytes; a click goes there.
void draw_residuals(const Session& session, ViewState& state, const Frame& frame);

/// Waste, peak and step time over chunk size, the Pareto front, and the plan of the chosen point.
void draw_search_result(const Session& session, ViewState& state, const Frame& frame);

}  // namespace shard::view
