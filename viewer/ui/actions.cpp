// Actions and keys.
#include "viewer/ui/actions.h"

#include <algorithm>
#include <array>

#include "viewer/index/ticks.h"
#include "viewer/ui/notes.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

constexpr std::array<Key, 28> kKeys{{
    {"W  S", "zoom in, out at the mouse"},
    {"A  D", "move left, right"},
    {"wheel", "zoom at the mouse"},
    {"drag", "move"},
    {"shift + drag", "select a range of time"},
    {"click", "select a span, chunk or block; in memory: set the marker"},
    {"double click", "zoom to a span or block, or to the selected range"},
    {"ctrl + wheel", "chunks: fewer or more rows; memory: smaller blocks"},
    {"F", "fit everything, or the selected range", 'f', Action::fit},
    {"P", "go to the memory peak", 'p', Action::peak},
    {"C", "colours of memory: sites, stacks or categories", 'c', Action::memory_by},
    {"/", "search for spans by name", '/', Action::search},
    {"n", "next match", 'n', Action::next_match},
    {"N", "previous match", 'N', Action::previous_match},
    {">", "along an arrow: to what the selected span leads to", '>', Action::follow_flow},
    {"<", "back along an arrow: to what it waits for", '<', Action::follow_back},
    {"M", "write a note at the marker, else at the mouse", 'm', Action::note},
    {"]", "next note", ']', Action::next_note},
    {"[", "previous note", '[', Action::previous_note},
    {"T", "dark or light", 't', Action::theme},
    {"B", "side panel on or off", 'b', Action::side_panel},
    {"?", "these keys", '?', Action::help},
    {"Esc", "close help, search or a note; drop the range, then the selection", 0, Action::close},
    // Capitals do what their small letters do, except for N.
    {"", "", 'C', Action::memory_by},
    {"", "", 'F', Action::fit},
    {"", "", 'P', Action::peak},
    {"", "", 'M', Action::note},
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
  const Alignment& alignment = alignment_of(session, state.align, state.document);
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

/// The next one in time of the spans that an arrow leads to, or the last of those that arrows come from.
void walk_flow(const Session& session, ViewState& state, Derived& derived, bool forward) {
  if (!state.selected) {
    state.notice = "select a span first: arrows begin and end at spans";
    return;
  }
  const SpanRef from = *state.selected;
  const FlowIndex& flows = flows_of(session, derived, from.document);
  const std::vector<FlowLink> links = forward ? flows.from(from.span) : flows.to(from.span);
  if (links.empty()) {
    state.notice = forward ? "no arrow leads on from here" : "no arrow comes here";
    return;
  }
  const Document& document = session.documents[from.document];
  const auto end_of = [&](const FlowLink& link) { return document.time_of(forward ? link.to : link.from).end_ns; };
  const auto best = forward ? std::ranges::min_element(links, {}, end_of) : std::ranges::max_element(links, {}, end_of);
  go_to_span(session, state, {from.document, forward ? best->to : best->from}, false);
  state.tab = Pane::selection;
}

void change_memory_by(const Session& session, ViewState& state) {
  if (session.empty() || session.documents[0].trace().stacks.empty()) {
    state.notice = "the trace knows no stacks, so memory is shown by category";
    return;
  }
  state.memory_by = state.memory_by == MemoryBy::site    ? MemoryBy::stack
                    : state.memory_by == MemoryBy::stack ? MemoryBy::category
                                                         : MemoryBy::site;
}

void close_one(ViewState& state) {
  if (state.help_open) {
    state.help_open = false;
  } else if (state.note_field) {
    state.note_field.reset();
  } else if (state.search_open) {
    state.search_open = false;
  } else if (state.range) {
    state.range.reset();
  } else {
    state.selected.reset();
    state.chunk.reset();
    state.block.reset();
  }
}

}  // namespace

std::span<const Key> key_table() {
  return kKeys;
}

TimeRange axis_time(const Session& session, const ViewState& state, SpanRef span) {
  const TimeRange own = session.documents[span.document].time_of(span.span);
  if (span.document == 0) return own;
  const Alignment& alignment = alignment_of(session, state.align, span.document);
  return {alignment.to_first(own.begin_ns), alignment.to_first(own.end_ns)};
}

void fit_view(const Session& session, ViewState& state) {
  state.bytes.reset();
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
    case Action::memory_by: change_memory_by(session, state); break;
    case Action::side_panel: state.side_open = !state.side_open; break;
    case Action::help: state.help_open = !state.help_open; break;
    case Action::note: open_note(state); break;
    case Action::next_note: step_note(state, true); break;
    case Action::previous_note: step_note(state, false); break;
    case Action::follow_flow: walk_flow(session, state, derived, true); break;
    case Action::follow_back: walk_flow(session, state, derived, false); break;
    case Action::close: close_one(state); break;
  }
}

}  // namespace shard::view
