// What the panes over the time axis have in common: heading, ground, grid, marker, cursor, an empty state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "viewer/ui/canvas.h"
#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// A pane cut into its heading, its gutter and its plot.
struct PaneArea {
  Rect title, gutter, plot;
};
[[nodiscard]] PaneArea cut_pane(const Rect& area, const Frame& frame);

/// Fills the ground and writes the heading; `note` is dim text at its right end.
void draw_pane_ground(const Canvas& canvas, const PaneArea& area, std::string_view title, std::string_view note,
                      const Frame& frame);

/// Vertical lines of the time axis; steps begin with a stronger one.
void draw_time_grid(const Canvas& canvas, const Rect& plot, const Session& session, const ViewState& state,
                    const Frame& frame);

/// Selected range, marker and mouse position, over the data.
void draw_time_marks(const Canvas& canvas, const Rect& plot, const ViewState& state, const Frame& frame);

/// Why there is nothing to see, and what would bring something: centred, dim, up to two lines.
void draw_empty(const Canvas& canvas, const Rect& area, std::string_view what, std::string_view help,
                const Frame& frame);

/// Text cut at spaces into lines no wider than `width`; a word that is wider is a line of its own.
[[nodiscard]] std::vector<std::string> wrapped(const Canvas& canvas, std::string_view text, float width, ImFont* font);

/// Pixels of a time on the axis of `plot`.
[[nodiscard]] float x_in(const Rect& plot, const ViewState& state, std::int64_t time_ns);

}  // namespace shard::view
