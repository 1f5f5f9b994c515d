// The layout.
#include "viewer/ui/layout.h"

#include <algorithm>
#include <cmath>

#include "viewer/ui/counter_pane.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/overlays.h"
#include "viewer/ui/segment_pane.h"

namespace shard::view {
namespace {

/// Cuts `height` off the top of `rest`.
Rect take(Rect& rest, float height) {
  const Rect top{rest.x0, rest.y0, rest.x1, std::min(rest.y1, rest.y0 + std::round(height))};
  rest.y0 = top.y1;
  return top;
}

}  // namespace

Layout lay_out(const Rect& whole, const Session& session, const ViewState& state, const Frame& frame, float lanes) {
  Layout layout;
  Rect rest = whole;
  layout.toolbar = take(rest, frame.px(34));
  layout.problems = take(rest, problems_height(session, state, frame));
  layout.status = {rest.x0, rest.y1 - frame.px(22), rest.x1, rest.y1};
  rest.y1 = layout.status.y0;
  if (state.side_open) {
    const float width =
        std::clamp(frame.px(state.side_width), frame.px(200), std::max(frame.px(200), rest.width() * 0.45F));
    layout.side = {std::round(rest.x1 - width), rest.y0, rest.x1, rest.y1};
    rest.x1 = layout.side.x0;
  } else {
    layout.side = {rest.x1, rest.y0, rest.x1, rest.y0};
  }
  layout.minimap = take(rest, frame.px(30));
  layout.ruler = take(rest, frame.px(36));
  const bool segments = has_segments(session);
  layout.segments = {rest.x0, rest.y1 - (segments ? std::round(rest.height() * state.heights[3]) : 0), rest.x1,
                     rest.y1};
  rest.y1 = layout.segments.y0;
  const float room = rest.height();
  const bool chunks = std::ranges::any_of(session.documents, [](const Document& d) { return !d.chunks().empty(); });
  const float chunk_height = chunks ? std::round(room * state.heights[1]) : 0;
  // Two lines of text have to fit in a counter, unless there is no room at all.
  const float least = std::min(frame.px(kTitleHeight + 36), room / 4);
  const float counter_height = has_counters(session, state) ? std::round(std::max(least, room * state.heights[2])) : 0;
  // A pane with nothing in it keeps its heading and a line that says why.
  const float empty = frame.px(kTitleHeight + 44);
  const auto has = [&](auto any) { return std::ranges::any_of(session.documents, any); };
  const bool memory = has([](const Document& d) { return !d.memory().empty(); });
  const bool spans = has([](const Document& d) { return !d.rows().empty(); });
  const float above = room - chunk_height - counter_height;
  layout.timeline = take(rest, !spans    ? std::min(empty, above / 2)
                               : !memory ? above - std::min(empty, above / 2)
                                         : std::min(room * state.heights[0], lanes));
  layout.memory = take(rest, rest.height() - chunk_height - counter_height);
  layout.chunks = take(rest, chunk_height);
  layout.counters = rest;
  return layout;
}

}  // namespace shard::view
