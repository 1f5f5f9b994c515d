// The counter pane.
#include "viewer/ui/counter_pane.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "viewer/index/ticks.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/pane_parts.h"
#include "viewer/ui/plot.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

/// One curve with the name that its strip bears.
struct Strip {
  std::size_t document = 0;
  const CounterSeries* series = nullptr;
};

std::vector<Strip> strips_of(const Session& session, const ViewState& state) {
  std::vector<Strip> strips;
  for (std::size_t d = 0; d < session.documents.size(); ++d) {
    for (const CounterSeries& series : session.documents[d].counters()) {
      if (state.rank.valid() && series.rank.valid() && series.rank != state.rank) continue;
      if (series.curve.size() > 0) strips.push_back({d, &series});
    }
  }
  return strips;
}

std::string value_text(std::string_view name, double value) {
  return name.ends_with("_bytes") ? size_text(static_cast<std::int64_t>(value)) : show_number(value);
}

void draw_strip(const Canvas& canvas, const Rect& gutter, const Rect& plot, const Strip& strip, const Session& session,
                ViewState& state, Derived& derived, const Frame& frame) {
  const Theme& theme = frame.theme;
  const Document& document = session.documents[strip.document];
  const StepCurve& curve = strip.series->curve;
  const std::string_view name = document.trace().name_of(strip.series->name);
  const Alignment& alignment = alignment_of(session, state.align, strip.document);
  const PixelRange view = pixels(state.camera, static_cast<std::int32_t>(plot.width()));
  curve.columns(strip.document == 0 ? view : alignment.to_other(view), derived.values);
  const double high = std::max(0.0, curve.values()[curve.highest()]);
  const double low = std::min(0.0, curve.values()[curve.lowest()]);
  const double span = high > low ? (high - low) * 1.1 : 1;
  const auto y_of = [&](double value) {
    return plot.y1 - 1 - static_cast<float>((value - low) / span) * (plot.height() - 2);
  };
  const Color color = theme.series[strip.document % theme.series.size()];
  const float ground = y_of(0);
  for (std::size_t i = 0; i < derived.values.size(); ++i) {
    const ValueColumn& column = derived.values[i];
    if (!column.any) continue;
    const float x = plot.x0 + static_cast<float>(i);
    const float top = y_of(column.highest);
    const float bottom = y_of(column.lowest);
    canvas.fill({x, std::min(top, ground), x + 1, std::max(bottom, ground)}, with_alpha(color, 60));
    canvas.fill({x, top - 1, x + 1, std::max(bottom, top) + 1}, color);
  }
  const float pad = frame.px(kPad);
  const float middle = std::round(plot.y0 + plot.height() / 2);
  std::string label(name);
  if (strip.series->rank.valid()) label += ", rank " + std::to_string(strip.series->rank.value);
  if (session.documents.size() > 1) label += ", " + short_name(session, strip.document);
  canvas.text_in({gutter.x0 + pad, plot.y0, gutter.x1 - pad, middle}, label, theme.text, frame.fonts.small);
  std::int64_t time = state.hover_ns ? *state.hover_ns : marker_time(session, state);
  if (strip.document != 0) time = alignment.to_other(time);
  const auto value = curve.at(time);
  canvas.text_in({gutter.x0 + pad, middle, gutter.x1 - pad, plot.y1},
                 (value ? value_text(name, *value) : std::string("no value yet")) + "   most " + value_text(name, high),
                 theme.dim, frame.fonts.small);
}

}  // namespace

bool has_counters(const Session& session, const ViewState& state) {
  return !strips_of(session, state).empty();
}

void draw_counters(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  const PaneArea pane = cut_pane(area, frame);
  const std::vector<Strip> strips = strips_of(session, state);
  const auto fit_count = std::max<std::size_t>(1, static_cast<std::size_t>(pane.plot.height() / frame.px(34)));
  const std::size_t shown = std::min(strips.size(), fit_count);
  std::string note =
      show_count(static_cast<std::int64_t>(strips.size())) + (strips.size() == 1 ? " counter" : " counters");
  if (shown < strips.size()) note += ", the first " + std::to_string(shown) + " shown: make the pane taller for more";
  draw_pane_ground(canvas, pane, "Counters", note, frame);
  zoom_to_range(plot_mouse("counters", pane.plot, session, state, frame), state);
  if (strips.empty()) {
    draw_empty(canvas, pane.plot, "The trace has no counters.", "", frame);
    return;
  }
  {
    const Clip clip(canvas, {area.x0, pane.plot.y0, area.x1, area.y1});
    draw_time_grid(canvas, pane.plot, session, state, frame);
    const float height = std::floor(pane.plot.height() / static_cast<float>(shown));
    for (std::size_t i = 0; i < shown; ++i) {
      const float top = pane.plot.y0 + static_cast<float>(i) * height;
      const Rect plot{pane.plot.x0, top + frame.px(3), pane.plot.x1, top + height - frame.px(2)};
      draw_strip(canvas, pane.gutter, plot, strips[i], session, state, derived, frame);
      if (i + 1 < shown) canvas.horizontal(area.x0, area.x1, top + height, frame.theme.grid);
    }
  }
  draw_time_marks(canvas, pane.plot, state, frame);
}

}  // namespace shard::view
