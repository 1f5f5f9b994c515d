// Actions and keys.
#include "viewer/ui/actions.h"

#include <algorithm>
#include <array>

#include "viewer/index/ticks.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

constexpr std::array<Key, 20> kKeys{{
    {"W  S", "zoom in, out at the mouse"},
    {"A  D", "move left, right"},
    {"wheel", "zoom at the mouse"},
    {"drag", "move"},
    {"shift + drag", "select a range of time"},
    {"click", "select a span or chunk; in memory: set the marker"},
    {"double click", "zoom to a span, or to the selected range"},
    {"ctrl + wheel", "in the chunk map: fewer or more rows"},
    {"F", "fit everything, or the selected range", 'f', Action::fit},
    {"P", "go to the memory peak", 'p', Action::peak},
    {"/", "search for spans by name", '/', Action::search},
    {"n", "next match", 'n', Action::next_match},
    {"N", "previous match", 'N', Action::previous_match},
    {"T", "dark or light", 't', Action::theme},
    {"B", "side panel on or off", 'b', Action::side_panel},
    {"?", "these keys", '?', Action::help},
    {"Esc", "close help or search; drop the range, then the selection", 0, Action::close},
    // Capitals do what their small letters do, except for N.
    {"", "", 'F', Action::fit},
    {"", "", 'P', Action::peak},
    {"", "", 'T', Action::theme},
}};

void step_match(const Session& session, ViewState& state, Derived& derived, bool forward) {
  if (session.empty()) return;
  if (state.query.empty()) {
    state.search_open = state.search_focus = true;
    return;
  }
  const NameMatch& match = matches(session, state, derived);
  if (match.empty()) {
    state.notice = "nothing matches '" + state.query + "'";
    return;
  }
  const Document& document = session.documents[state.document];
  const Alignment alignment = alignment_of(session, state.align, state.document);
  const TimeRange view = visible(state.camera);
  const auto own_time = [&](std::int64_t time) { return state.document == 0 ? time : alignment.to_other(time); };
  std::optional<std::uint32_t> from;
  if (state.selected && state.selected->document == state.document &&
      match.contains(document.trace().spans.name[state.selected->span]))
    from = state.selected->span;
  std::optional<std::uint32_t> found = forward ? next_match(document, match, own_time(view.begin_ns), from)
                                               : previous_match(document, match, own_time(view.end_ns), from);
  state.notice.clear();
  if (!found) {
    const TimeRange all = document.range();
    found = forward ? next_match(document, match, all.begin_ns) : previous_match(document, match, all.end_ns);
    state.notice = forward ? "search went on from the beginning" : "search went on from the end";
  }
  if (found) go_to_span(session, state, {state.document, *found}, false);
}

void close_one(ViewState& state) {
  if (state.help_open) {
    state.help_open = false;
  } else if (state.search_open) {
    state.search_open = false;
  } else if (state.range) {
    state.range.reset();
  } else {
    state.selected.reset();
    state.chunk.reset();
  }
}

}  // namespace

std::span<const Key> key_table() {
  return kKeys;
}

TimeRange axis_time(const Session& session, const ViewState& state, SpanRef span) {
  const TimeRange own = session.documents[span.document].time_of(span.span);
  if (span.document == 0) return own;
  const Alignment alignment = alignment_of(session, state.align, span.document);
  return {alignment.to_first(own.begin_ns), alignment.to_first(own.end_ns)};
}

void fit_view(const Session& session, ViewState& state) {
  const Camera whole = fit(state.camera.origin_ns, whole_range(session, state.align));
  if (state.range) {
    const Camera part = fit(state.camera.origin_ns, *state.range);
    state.camera = state.camera == part ? whole : part;
    return;
  }
  state.camera = whole;
}

void go_to_peak(const Session& session, ViewState& state) {
  if (session.empty()) return;
  const MemorySeries* series = shown_memory(session.documents[0], state);
  if (series == nullptr) {
    state.notice = "the trace has no memory events, so there is no peak";
    return;
  }
  state.marker_ns = series->peak_time_ns();
  if (!visible(state.camera).contains(*state.marker_ns)) state.camera = center(state.camera, *state.marker_ns);
  state.tab = Pane::live;
  state.side_open = true;
  state.notice = "peak of rank " + std::to_string(series->rank().value) + ", " + to_string(series->memory()) + ": " +
                 size_text(series->peak_bytes());
}

void go_to_span(const Session& session, ViewState& state, SpanRef span, bool zoom) {
  state.selected = span;
  const TimeRange time = axis_time(session, state, span);
  const TimeRange view = visible(state.camera);
  if (zoom) {
    state.camera = fit(state.camera.origin_ns, time, 0.6);
  } else if (time.begin_ns < view.begin_ns || time.end_ns > view.end_ns) {
    state.camera = time.length_ns() > view.length_ns() ? fit(state.camera.origin_ns, time, 0.2)
                                                       : center(state.camera, time.begin_ns + time.length_ns() / 2);
  }
}

void act(Action action, const Session& session, ViewState& state, Derived& derived) {
  switch (action) {
    case Action::none: break;
    case Action::fit: fit_view(session, state); break;
    case Action::search: state.search_open = state.search_focus = true; break;
    case Action::next_match: step_match(session, state, derived, true); break;
    case Action::previous_match: step_match(session, state, derived, false); break;
    case Action::peak: go_to_peak(session, state); break;
    case Action::theme: state.theme = state.theme == ThemeName::dark ? ThemeName::light : ThemeName::dark; break;
    case Action::side_panel: state.side_open = !state.side_open; break;
    case Action::help: state.help_open = !state.help_open; break;
    case Action::close: close_one(state); break;
  }
}

}  // namespace shard::view
