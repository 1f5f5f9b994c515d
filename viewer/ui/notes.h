// Bookmarks and notes: moments of the first document that a user marked, with what they wrote there.
#pragma once

#include <cstddef>
#include <optional>

#include "viewer/ui/canvas.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/plot.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// Opens the field for a note at the marker, else under the mouse, else in the middle of the view; an existing note
/// there is edited.
void open_note(ViewState& state);
/// Puts the marker on a note and brings it into view.
void go_to_note(ViewState& state, std::size_t note);
/// To the nearest note after (before) the marker, else after (before) the view's begin (end); says so where there is
/// none.
void step_note(ViewState& state, bool forward);

/// Flags on the ruler, a click on one goes there; lines over the plots are drawn by draw_time_marks().
void draw_note_flags(const Canvas& canvas, const Rect& plot, ViewState& state, const PlotMouse& mouse,
                     const Frame& frame);
/// The field that M opens, at the top left of `area`.
void draw_note_field(ViewState& state, const Frame& frame, const Rect& area);
/// All notes, each a click away; nothing where there are none.
void draw_note_list(ViewState& state, const Frame& frame);

}  // namespace shard::view
