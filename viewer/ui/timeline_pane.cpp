// Drawing of lanes.
#include "viewer/ui/timeline_pane.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "viewer/index/ticks.h"
#include "viewer/ui/actions.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/pane_parts.h"
#include "viewer/ui/plot.h"
#include "viewer/ui/span_text.h"
#include "viewer/ui/text.h"
#include "viewer/ui/timeline_lines.h"

namespace shard::view {
namespace {

/// Spans from this width on are drawn one by one.
constexpr double kWidePixels = 3;
/// Share of its colour that a span keeps while others match the search.
constexpr double kDimmed = 0.3;
/// And what of a span was waiting keeps.
constexpr double kWaiting = 0.4;
/// Names from this width on.
constexpr float kNamePixels = 30;

/// What the lanes are drawn from in one frame.
struct TimelineScene {
  const Session& session;
  ViewState& state;
  Derived& derived;
  const Frame& frame;
  const Canvas& canvas;
  Rect plot;
};

/// Columns of narrow spans: each class as high as its share of the column's time, so that what is free is idle. While a
/// search is on they are dimmed: which of them match shows when they are wide enough to be drawn.
void draw_columns(const TimelineScene& scene, const Rect& lane, const PixelRange& pixels, bool dimmed) {
  const auto& columns = scene.derived.row.columns;
  for (std::size_t i = 0; i < columns.size();) {
    const BusyColumn& column = columns[i];
    const std::int64_t length = pixels.end(column.column) - pixels.begin(column.column);
    // Equal neighbours become one rectangle.
    std::size_t end = i + 1;
    while (end < columns.size() && columns[end].column == columns[end - 1].column + 1 &&
           columns[end].busy_ns == column.busy_ns &&
           pixels.end(columns[end].column) - pixels.begin(columns[end].column) == length)
      ++end;
    const float x0 = lane.x0 + static_cast<float>(column.column);
    const float x1 = x0 + static_cast<float>(end - i);
    float bottom = lane.y1;
    std::int64_t sum = 0;
    for (int c = 0; c < kSpanClassCount; ++c) {
      const std::int64_t busy = column.busy_ns[static_cast<std::size_t>(c)];
      if (busy == 0) continue;
      sum += busy;
      const float top =
          lane.y1 - lane.height() * static_cast<float>(static_cast<double>(sum) / static_cast<double>(length));
      const Color color = scene.frame.theme.span_class[static_cast<std::size_t>(c)];
      scene.canvas.fill({x0, top, x1, bottom}, dimmed ? mix(color, scene.frame.theme.pane, kDimmed) : color);
      bottom = top;
    }
    // Spans of no length have no share; a line under the lane tells that they are there.
    if (sum == 0) scene.canvas.fill({x0, lane.y1 - scene.frame.px(2), x1, lane.y1}, scene.frame.theme.dim);
    i = end;
  }
}

/// The pale part of a span: as long as it waited, and in front, since a collective mostly waits for others to come.
void draw_waiting(const TimelineScene& scene, const Span& span, const Rect& whole, const Rect& shown, Color color) {
  if (span.waiting_ns == 0 || span.duration_ns == 0) return;
  const auto share = static_cast<float>(static_cast<double>(span.waiting_ns) / static_cast<double>(span.duration_ns));
  const float end = std::min(shown.x1, whole.x0 + whole.width() * share);
  if (end > shown.x0)
    scene.canvas.fill({shown.x0, shown.y0, end, shown.y1}, mix(color, scene.frame.theme.pane, kWaiting));
}

void draw_wide(const TimelineScene& scene, const TimelineLine& line, const Rect& lane, const Alignment* alignment,
               const NameMatch* match) {
  const Document& document = scene.session.documents[line.document];
  const Theme& theme = scene.frame.theme;
  for (const WideSpan& span : scene.derived.row.wide) {
    const std::int64_t begin = alignment == nullptr ? span.begin_ns : alignment->to_first(span.begin_ns);
    const std::int64_t end = alignment == nullptr ? span.end_ns : alignment->to_first(span.end_ns);
    const float left = x_in(scene.plot, scene.state, begin);
    const float right = x_in(scene.plot, scene.state, end);
    Rect box{std::max(left, lane.x0), lane.y0, std::min(right, lane.x1), lane.y1};
    if (box.width() <= 0) continue;
    // A line of ground between neighbours, taken from the span's end.
    if (right - left > 5) box.x1 = std::max(box.x0 + 1, box.x1 - 1);
    Color color = theme.span_class[static_cast<std::size_t>(span.kind)];
    const bool matched = match == nullptr || match->contains(document.trace().spans.name[span.span]);
    if (!matched) color = mix(color, theme.pane, kDimmed);
    scene.canvas.fill(box, color);
    draw_waiting(scene, document.trace().spans[span.span], {left, box.y0, right, box.y1}, box, color);
    const SpanRef ref{line.document, span.span};
    if (scene.state.selected == ref) {
      scene.canvas.outline({box.x0 - 1, box.y0 - 1, box.x1 + 1, box.y1 + 1}, theme.text, scene.frame.px(2));
    }
    if (box.width() >= scene.frame.px(kNamePixels)) {
      const float pad = scene.frame.px(4);
      const std::string name = document.name_of(span.span);
      const std::string_view shown = fitting_tail(name, [&](std::string_view text) {
        return scene.canvas.width_of(text, scene.frame.fonts.small) <= box.width() - 2 * pad;
      });
      scene.canvas.text_in({box.x0 + pad, box.y0, box.x1 - pad, box.y1}, shown, matched ? ink_on(color) : theme.dim,
                           scene.frame.fonts.small);
    }
    if (scene.frame.items != nullptr)
      scene.frame.name("span:" + std::to_string(line.document) + "/" + std::to_string(span.span), box);
  }
}

void draw_line_label(const TimelineScene& scene, const TimelineLine& line, const Rect& gutter, float top) {
  const Theme& theme = scene.frame.theme;
  const float pad = scene.frame.px(kPad);
  const Rect box{gutter.x0 + pad, top, gutter.x1 - pad, top + line.height};
  if (line.heading) {
    scene.canvas.text_in(box, line.label, theme.text, scene.frame.fonts.bold);
    return;
  }
  float right = box.x1;
  if (!line.tag.empty()) {
    const float width = std::min(scene.canvas.width_of(line.tag, scene.frame.fonts.small), box.width() * 0.45F);
    right = box.x1 - width;
    scene.canvas.text_in({right, box.y0, box.x1 + 1, box.y1}, line.tag,
                         theme.series[line.document % theme.series.size()], scene.frame.fonts.small);
    scene.canvas.fill({gutter.x1 - scene.frame.px(3), top, gutter.x1, top + line.height},
                      theme.series[line.document % theme.series.size()]);
    right -= scene.frame.px(4);
  }
  const Rect room{box.x0 + pad, box.y0, right, box.y1};
  scene.canvas.text_in(
      room, ends_of(line.label, [&](std::string_view text) { return scene.canvas.width_of(text) <= room.width(); }),
      theme.text);
}

/// Arrows from and to the selected span: a line, and a head where it arrives.
void draw_flows(const TimelineScene& scene, const std::vector<TimelineLine>& lines, float origin) {
  if (!scene.state.selected) return;
  const SpanRef selected = *scene.state.selected;
  const Document& document = scene.session.documents[selected.document];
  const FlowIndex& flows = flows_of(scene.session, scene.derived, selected.document);
  const auto middle_of = [&](std::uint32_t span) -> std::optional<float> {
    const std::size_t row = document.place_of(span).row;
    for (const TimelineLine& line : lines) {
      if (!line.heading && line.document == selected.document && line.row == row)
        return origin + line.top + line.height / 2;
    }
    return std::nullopt;
  };
  const auto arrow = [&](const FlowLink& link, Color color) {
    const auto y0 = middle_of(link.from);
    const auto y1 = middle_of(link.to);
    if (!y0 || !y1) return;
    const float x0 =
        x_in(scene.plot, scene.state, axis_time(scene.session, scene.state, {selected.document, link.from}).end_ns);
    const float x1 =
        x_in(scene.plot, scene.state, axis_time(scene.session, scene.state, {selected.document, link.to}).begin_ns);
    scene.canvas.line(x0, *y0, x1, *y1, color, scene.frame.px(1.5F));
    const float angle = std::atan2(*y1 - *y0, x1 - x0);
    const float size = scene.frame.px(7);
    scene.canvas.triangle(x1, *y1, x1 - size * std::cos(angle - 0.45F), *y1 - size * std::sin(angle - 0.45F),
                          x1 - size * std::cos(angle + 0.45F), *y1 - size * std::sin(angle + 0.45F), color);
  };
  for (const FlowLink& link : flows.to(selected.span)) arrow(link, scene.frame.theme.warning);
  for (const FlowLink& link : flows.from(selected.span)) arrow(link, scene.frame.theme.text);
}

void tooltip(const Document& document, std::uint32_t span, const Frame& frame) {
  ImGui::BeginTooltip();
  ImGui::PushFont(frame.fonts.bold);
  ImGui::TextUnformatted(document.name_of(span).c_str());
  ImGui::PopFont();
  for (const auto& [name, value] : span_facts(document, span)) {
    ImGui::TextDisabled("%s", name.c_str());
    ImGui::SameLine(frame.px(90));
    ImGui::TextUnformatted(value.c_str());
  }
  ImGui::EndTooltip();
}

std::string note_of(const Session& session, const ViewState& state, Derived& derived) {
  std::string note;
  if (!state.query.empty()) {
    note = show_count(matches(session, state, derived).span_count) + " match '" + state.query + "'";
  } else {
    std::int64_t count = 0;
    for (const Document& document : session.documents)
      count += static_cast<std::int64_t>(document.trace().spans.size());
    note = show_count(count) + " spans; colour: what, height: share of the pixel's time";
    if (std::ranges::any_of(session.documents, &Document::waits)) note += "; pale: waiting";
  }
  return note;
}

}  // namespace

float timeline_height(const Session& session, const ViewState& state, const Frame& frame) {
  const std::vector<TimelineLine> lines = timeline_lines(session, state, frame);
  return frame.px(kTitleHeight) + (lines.empty() ? 0 : lines.back().top + lines.back().height) + frame.px(8);
}

void draw_timeline(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  const PaneArea pane = cut_pane(area, frame);
  draw_pane_ground(canvas, pane, "Timeline", note_of(session, state, derived), frame);
  const std::vector<TimelineLine> lines = timeline_lines(session, state, frame);
  if (lines.empty()) {
    draw_empty(canvas, pane.plot, "There are no spans here.",
               state.rank.valid() ? "Another rank may have some: choose 'all ranks' above."
                                  : "The trace holds memory events or counters only.",
               frame);
  }
  const PlotMouse mouse = plot_mouse("timeline", pane.plot, session, state, frame);
  const float content = lines.empty() ? 0 : lines.back().top + lines.back().height + frame.px(8);
  const float room = std::max(0.0F, content - pane.plot.height());
  state.lanes_scroll = std::clamp(state.lanes_scroll - mouse.dragged_y - mouse.wheel * frame.px(40), 0.0F, room);

  {
    const Clip clip(canvas, {area.x0, pane.plot.y0, area.x1, area.y1});
    draw_time_grid(canvas, pane.plot, session, state, frame);
    const TimelineScene scene{session, state, derived, frame, canvas, pane.plot};
    const float origin = pane.plot.y0 + frame.px(2) - std::floor(state.lanes_scroll);
    const NameMatch* match = state.query.empty() ? nullptr : &matches(session, state, derived);
    const PixelRange view = pixels(state.camera, static_cast<std::int32_t>(pane.plot.width()));
    std::optional<SpanRef> under;
    for (const TimelineLine& line : lines) {
      const float top = std::floor(origin + line.top);
      if (top + line.height < pane.plot.y0 || top > pane.plot.y1) continue;
      draw_line_label(scene, line, pane.gutter, top);
      if (line.heading) {
        canvas.horizontal(area.x0, area.x1, top, frame.theme.border);
        continue;
      }
      const Rect lane{pane.plot.x0, top, pane.plot.x1, top + line.height};
      const Document& document = session.documents[line.document];
      const Clip in_plot(canvas, {pane.plot.x0, pane.plot.y0, pane.plot.x1, pane.plot.y1});
      const Alignment& alignment = alignment_of(session, state.align, line.document);
      const PixelRange own = line.document == 0 ? view : alignment.to_other(view);
      document.draw(line.row, own, wide_at_least(own, kWidePixels), derived.row);
      const bool marks = state.document == line.document;
      draw_columns(scene, lane, own, marks && match != nullptr);
      draw_wide(scene, line, lane, line.document == 0 ? nullptr : &alignment, marks ? match : nullptr);
      if (frame.items != nullptr)
        frame.name("lane:" + std::to_string(line.document) + "/" + std::to_string(line.row), lane);
      if (mouse.hovered && lane.contains(mouse.x, mouse.y)) {
        const std::int64_t time = time_at(state.camera, mouse.x - pane.plot.x0, pane.plot.width());
        const auto span = document.span_at(line.row, line.document == 0 ? time : alignment.to_other(time));
        if (span) under = SpanRef{line.document, *span};
      }
    }
    {
      const Clip in_plot(canvas, pane.plot);
      draw_flows(scene, lines, origin);
    }
    if (mouse.clicked) {
      state.selected = under;
      if (under) {
        state.document = under->document;
        state.tab = Pane::selection;
      }
    }
    if (mouse.double_clicked && under) go_to_span(session, state, *under, true);
    if (!under) zoom_to_range(mouse, state);
    if (under && state.drag == Drag::none) tooltip(session.documents[under->document], under->span, frame);
  }
  if (room > 0) {
    const float height = pane.plot.height() * pane.plot.height() / content;
    const float top = pane.plot.y0 + (pane.plot.height() - height) * state.lanes_scroll / room;
    canvas.fill({pane.plot.x1 - frame.px(5), top, pane.plot.x1 - frame.px(1), top + height}, frame.theme.border);
  }
  draw_time_marks(canvas, pane.plot, state, frame);
}

}  // namespace shard::view
