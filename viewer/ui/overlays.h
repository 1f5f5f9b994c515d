// What lies over or around the panes: tool bar, status line, search field, help, problems, loading.
#pragma once

#include <string_view>

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

void draw_toolbar(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area);
/// What is under the mouse and what is selected, at the left; where we are, at the right.
void draw_status(const Session& session, const ViewState& state, const Frame& frame, const Rect& area);
/// The field that `/` opens, at the top right of `area`.
void draw_search_field(const Session& session, ViewState& state, Derived& derived, const Frame& frame,
                       const Rect& area);
/// Every key, from the key table.
void draw_help(ViewState& state, const Frame& frame, const Rect& area);

/// Height of the bar that says what could not be read; 0 without problems or once it is closed.
[[nodiscard]] float problems_height(const Session& session, const ViewState& state, const Frame& frame);
void draw_problems(const Session& session, ViewState& state, const Frame& frame, const Rect& area);
/// Fills the picture when nothing could be opened.
void draw_nothing_open(const Session& session, const Frame& frame, const Rect& area);
/// While files are read: `share` from 0 to 1.
void draw_loading(std::string_view what, double share, const Frame& frame, const Rect& area);

}  // namespace shard::view
