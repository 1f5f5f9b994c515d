// The frame: input first, then panes from the top.
#include "viewer/ui/view.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "viewer/ui/actions.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/chunk_pane.h"
#include "viewer/ui/counter_pane.h"
#include "viewer/ui/layout.h"
#include "viewer/ui/memory_pane.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/notes.h"
#include "viewer/ui/overlays.h"
#include "viewer/ui/plot.h"
#include "viewer/ui/segment_pane.h"
#include "viewer/ui/side_panes.h"
#include "viewer/ui/time_axis.h"
#include "viewer/ui/timeline_pane.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

/// The window that fills the picture and is behind everything.
struct Desk {
  Desk() {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos(ImVec2(0, 0));
    ImGui::SetNextWindowSize(size);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
    ImGui::Begin("desk", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoScrollWithMouse);
    ImGui::PopStyleVar();
    whole = {0, 0, size.x, size.y};
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  ~Desk() { ImGui::End(); }
  Rect whole;
};

void take_typed(const Session& session, ViewState& state, Derived& derived, const Frame& frame) {
  ImGuiIO& io = ImGui::GetIO();
  if (frame.keys.escape) {
    // Once for each press.
    if (!state.escape_held) act(Action::close, session, state, derived);
    state.escape_held = true;
  } else {
    state.escape_held = false;
  }
  if (io.WantTextInput || state.search_focus || state.note_field) return;
  for (const ImWchar typed : io.InputQueueCharacters) {
    for (const Key& key : key_table()) {
      if (key.typed != 0 && static_cast<ImWchar>(key.typed) == typed) {
        act(key.action, session, state, derived);
        break;
      }
    }
  }
  // The search field, if it opened, must not get the character that opened it.
  if (state.search_focus || state.note_field) io.InputQueueCharacters.resize(0);
}

bool tab_exists(const Session& session, Pane pane) {
  if (session.empty()) return pane == Pane::search;
  if (pane == Pane::residuals) return session.documents.size() > 1;
  if (pane == Pane::search) return session.search.has_value();
  return true;
}

const char* tab_label(Pane pane) {
  switch (pane) {
    case Pane::selection: return "Details";
    case Pane::live: return "Live";
    case Pane::statistics: return "Statistics";
    case Pane::residuals: return "Compare";
    case Pane::search: return "Search";
    case Pane::timeline: return "Timeline";
    case Pane::memory: return "Memory";
    case Pane::chunks: return "Chunks";
    case Pane::counters: return "Counters";
    case Pane::segments: return "Segments";
  }
  return "?";
}

void draw_table_pane(Pane pane, const Session& session, ViewState& state, Derived& derived, const Frame& frame) {
  switch (pane) {
    case Pane::selection: draw_selection(session, state, derived, frame); break;
    case Pane::live: draw_live(session, state, derived, frame); break;
    case Pane::statistics: draw_statistics(session, state, derived, frame); break;
    case Pane::residuals: draw_residuals(session, state, frame); break;
    case Pane::search: draw_search_result(session, state, frame); break;
    case Pane::timeline:
    case Pane::memory:
    case Pane::chunks:
    case Pane::counters:
    case Pane::segments: break;
  }
}

void draw_side(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area) {
  if (area.width() < 1) return;
  const Canvas canvas(frame);
  canvas.fill(area, frame.theme.pane);
  const float tabs = frame.px(30);
  canvas.fill({area.x0, area.y0, area.x1, area.y0 + tabs}, frame.theme.bar);
  canvas.vertical(area.x0, area.y0, area.y1, frame.theme.border);
  ImGui::SetCursorScreenPos(ImVec2(area.x0 + frame.px(kPad), area.y0 + frame.px(4)));
  for (const Pane pane : {Pane::selection, Pane::live, Pane::statistics, Pane::residuals, Pane::search}) {
    if (!tab_exists(session, pane)) continue;
    if (toggle(tab_label(pane), state.tab == pane, frame)) state.tab = pane;
    ImGui::SameLine(0, frame.px(4));
  }
  ImGui::SetCursorScreenPos(ImVec2(area.x0 + 1, area.y0 + tabs));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(frame.px(10), frame.px(8)));
  ImGui::BeginChild("side", ImVec2(area.width() - 1, area.height() - tabs), false,
                    ImGuiWindowFlags_AlwaysUseWindowPadding);
  draw_table_pane(state.tab, session, state, derived, frame);
  ImGui::EndChild();
  ImGui::PopStyleVar();
  frame.name("side", area);
}

void draw_only(Pane pane, const Session& session, ViewState& state, Derived& derived, const Frame& frame,
               const Rect& whole) {
  Rect rest = whole;
  const bool on_axis = pane == Pane::timeline || pane == Pane::memory || pane == Pane::chunks || pane == Pane::counters;
  if (on_axis) {
    const Rect ruler{rest.x0, rest.y0, rest.x1, rest.y0 + frame.px(36)};
    rest.y0 = ruler.y1;
    draw_ruler(session, state, frame, ruler);
  }
  switch (pane) {
    case Pane::timeline: draw_timeline(session, state, derived, frame, rest); return;
    case Pane::memory: draw_memory(session, state, derived, frame, rest); return;
    case Pane::chunks: draw_chunks(session, state, derived, frame, rest); return;
    case Pane::counters: draw_counters(session, state, derived, frame, rest); return;
    case Pane::segments: draw_segments(session, state, derived, frame, rest); return;
    case Pane::selection:
    case Pane::live:
    case Pane::statistics:
    case Pane::residuals:
    case Pane::search: break;
  }
  state.tab = pane;
  draw_side(session, state, derived, frame, rest);
}

/// The time under the mouse, known to every pane before the first is drawn.
void take_hover(const Rect& axis, ViewState& state) {
  state.hover_ns.reset();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (axis.contains(mouse.x, mouse.y)) state.hover_ns = time_at(state.camera, mouse.x - axis.x0, axis.width());
}

/// A bar between two panes; returns how far it was dragged.
float splitter(const char* id, const Rect& bar, bool horizontal, const Frame& frame) {
  if (bar.width() < 1 || bar.height() < 1) return 0;
  ImGui::SetCursorScreenPos(ImVec2(bar.x0, bar.y0));
  ImGui::InvisibleButton(id, ImVec2(bar.width(), bar.height()));
  const bool active = ImGui::IsItemActive();
  if (active || ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(horizontal ? ImGuiMouseCursor_ResizeNS : ImGuiMouseCursor_ResizeEW);
    Canvas(frame).fill(bar, with_alpha(frame.theme.accent, active ? 200 : 110));
  }
  frame.name(std::string("splitter:") + id, bar);
  const ImVec2 moved = ImGui::GetIO().MouseDelta;
  return active ? (horizontal ? moved.y : moved.x) : 0;
}

void draw_splitters(const Layout& layout, ViewState& state, const Frame& frame) {
  const float half = frame.px(3);
  const float room = layout.counters.y1 - layout.timeline.y0;
  if (room < 1) return;
  const auto bar_at = [&](const Rect& pane) { return Rect{pane.x0, pane.y0 - half, pane.x1, pane.y0 + half}; };
  if (const float moved = splitter("lanes", bar_at(layout.memory), true, frame); moved != 0)
    state.heights[0] = std::clamp(layout.timeline.height() / room + moved / room, 0.05F, 0.7F);
  if (layout.chunks.height() > 0) {
    if (const float moved = splitter("chunks", bar_at(layout.chunks), true, frame); moved != 0)
      state.heights[1] = std::clamp(state.heights[1] - moved / room, 0.05F, 0.5F);
  }
  if (layout.counters.height() > 0) {
    if (const float moved = splitter("counters", bar_at(layout.counters), true, frame); moved != 0)
      state.heights[2] = std::clamp(state.heights[2] - moved / room, 0.05F, 0.4F);
  }
  if (layout.segments.height() > 0) {
    const float whole = layout.segments.y1 - layout.timeline.y0;
    if (const float moved = splitter("segments", bar_at(layout.segments), true, frame); moved != 0)
      state.heights[3] = std::clamp(state.heights[3] - moved / whole, 0.08F, 0.7F);
  }
  if (layout.side.width() > 0) {
    const Rect bar{layout.side.x0 - half, layout.side.y0, layout.side.x0 + half, layout.side.y1};
    if (const float moved = splitter("side", bar, false, frame); moved != 0)
      state.side_width = std::clamp(state.side_width - moved / frame.fonts.scale, 200.0F, 1200.0F);
  }
}

}  // namespace

void draw_view(const Session& session, ViewState& state, Derived& derived, const Frame& frame) {
  const Desk desk;
  take_typed(session, state, derived, frame);
  if (session.empty() && !session.search) {
    draw_nothing_open(session, frame, desk.whole);
    return;
  }
  if (state.only) {
    take_hover({desk.whole.x0 + frame.px(kGutter), desk.whole.y0, desk.whole.x1, desk.whole.y1}, state);
    draw_only(*state.only, session, state, derived, frame, desk.whole);
    const Rect below{desk.whole.x0, desk.whole.y0 + frame.px(36), desk.whole.x1, desk.whole.y1};
    draw_search_field(session, state, derived, frame, below);
    draw_note_field(state, frame, below);
    draw_help(state, frame, desk.whole);
    return;
  }
  if (session.empty()) {
    Rect rest = desk.whole;
    rest.y0 = problems_height(session, state, frame);
    draw_problems(session, state, frame, {rest.x0, 0, rest.x1, rest.y0});
    draw_only(Pane::search, session, state, derived, frame, rest);
    return;
  }
  const Layout layout = lay_out(desk.whole, session, state, frame, timeline_height(session, state, frame));
  const float plot = layout.timeline.x0 + frame.px(kGutter);
  take_hover({plot, layout.ruler.y0, layout.timeline.x1, layout.counters.y1}, state);
  move_by_keys({layout.timeline.x0 + frame.px(kGutter), 0, layout.timeline.x1, 0}, session, state, frame);
  draw_splitters(layout, state, frame);
  draw_toolbar(session, state, derived, frame, layout.toolbar);
  draw_problems(session, state, frame, layout.problems);
  draw_minimap(session, state, derived, frame, layout.minimap);
  draw_ruler(session, state, frame, layout.ruler);
  draw_timeline(session, state, derived, frame, layout.timeline);
  draw_memory(session, state, derived, frame, layout.memory);
  if (layout.chunks.height() > 0) draw_chunks(session, state, derived, frame, layout.chunks);
  if (layout.counters.height() > 0) draw_counters(session, state, derived, frame, layout.counters);
  if (layout.segments.height() > 0) draw_segments(session, state, derived, frame, layout.segments);
  draw_side(session, state, derived, frame, layout.side);
  draw_status(session, state, frame, layout.status);
  const Rect over{layout.timeline.x0, layout.timeline.y0, layout.timeline.x1, layout.status.y0};
  draw_search_field(session, state, derived, frame, over);
  draw_note_field(state, frame, over);
  draw_help(state, frame, desk.whole);
}

void draw_loading_view(std::string_view what, double share, const Frame& frame) {
  const Desk desk;
  draw_loading(what, share, frame, desk.whole);
}

}  // namespace shard::view
