// Two curves over the first document's axis, each with its largest value named.
#include "viewer/ui/difference_strip.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "viewer/index/ticks.h"
#include "viewer/ui/memory_stack.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/pane_parts.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

/// Share of the strip that lateness takes.
constexpr float kLatenessShare = 0.4F;

struct DifferenceStrip {
  const Session& session;
  const ViewState& state;
  Derived& derived;
  const Frame& frame;
  Canvas canvas;
};

const ComparedCurves& curves_of(const DifferenceStrip& strip, const ComparedMemory& memory) {
  const auto key = std::tuple(memory.first, memory.other, strip.state.align);
  const auto found = strip.derived.differences.find(key);
  if (found != strip.derived.differences.end()) return found->second;
  const Document &first = strip.session.documents[0], &other = strip.session.documents[memory.document];
  ComparedCurves curves;
  curves.memory = memory_difference(first, memory.first, other, memory.other,
                                    alignment_of(strip.session, strip.state.align, memory.document));
  if (const std::optional<MemoryByOp>& joined = curves.memory.by_op; joined && !joined->equal()) {
    const MemoryPoint& point = joined->points[joined->begin];
    const MemoryPlace place =
        place_of(point, first.trace(), memory.first->events(), other.trace(), memory.other->events());
    curves.begins_at = size_text(point.bytes) + " from '" + place.op + "' on, step " + std::to_string(place.step);
  }
  curves.lateness = lateness(alignment_of(strip.session, AlignMode::stretch, memory.document));
  return strip.derived.differences.emplace(key, std::move(curves)).first->second;
}

void draw_difference_label(const DifferenceStrip& strip, const Rect& gutter, const Rect& plot, const std::string& what,
                           const std::string& of) {
  const float pad = strip.frame.px(kPad);
  const Rect label{gutter.x0 + pad, plot.y0 + strip.frame.px(2), gutter.x1 - pad, plot.y0 + strip.frame.px(18)};
  strip.canvas.text_in(label, what, strip.frame.theme.text, strip.frame.fonts.small);
  const Rect below{label.x0, label.y1, label.x1, label.y1 + strip.frame.px(16)};
  if (below.y1 <= plot.y1) strip.canvas.text_in(below, of, strip.frame.theme.dim, strip.frame.fonts.small);
}

/// Columns above zero in one colour, below it in another, from a curve that is not empty.
void draw_difference_columns(const DifferenceStrip& strip, const StepCurve& curve, const ByteAxis& axis, Color above,
                             Color below) {
  curve.columns(pixels(strip.state.camera, static_cast<std::int32_t>(axis.plot.width())), strip.derived.values);
  const float zero = axis.y(0);
  for (std::size_t i = 0; i < strip.derived.values.size(); ++i) {
    const ValueColumn& column = strip.derived.values[i];
    if (!column.any) continue;
    const float x = axis.plot.x0 + static_cast<float>(i);
    if (column.highest > 0) strip.canvas.fill({x, axis.y(column.highest), x + 1, zero}, above);
    if (column.lowest < 0) strip.canvas.fill({x, zero, x + 1, axis.y(column.lowest)}, below);
  }
  strip.canvas.horizontal(axis.plot.x0, axis.plot.x1, zero, strip.frame.theme.dim);
}

ByteAxis difference_axis(const StepCurve& curve, const Rect& plot) {
  const double high = std::max(0.0, curve.values()[curve.highest()]);
  const double low = std::min(0.0, curve.values()[curve.lowest()]);
  const double room = std::max(high - low, 1.0) * 0.12;
  return {plot, high > 0 ? high + room : room, low < 0 ? low - room : -room};
}

void draw_difference_note(const DifferenceStrip& strip, const Rect& plot, const std::string& text) {
  const Theme& theme = strip.frame.theme;
  strip.canvas.label(plot.x1 - strip.frame.px(4), plot.y0 + strip.frame.px(2), text, theme.text,
                     with_alpha(theme.pane, 220), plot, Anchor::right);
}

void draw_memory_difference(const DifferenceStrip& strip, const ComparedCurves& curves, const Rect& plot) {
  const Theme& theme = strip.frame.theme;
  const StepCurve& curve = curves.memory.curve;
  if (curve.size() == 0) {
    draw_empty(strip.canvas, plot, "Only one of the traces has memory events here.", "", strip.frame);
    return;
  }
  const bool equal = curve.values()[curve.highest()] == 0 && curve.values()[curve.lowest()] == 0;
  if (equal) {
    const float middle = (plot.y0 + plot.y1) / 2;
    strip.canvas.horizontal(plot.x0, plot.x1, middle, theme.good, strip.frame.px(1));
    draw_difference_note(strip, plot, curves.memory.by_op ? "equal at every op" : "equal to the byte at every moment");
    return;
  }
  const ByteAxis axis = difference_axis(curve, plot);
  draw_time_grid(strip.canvas, plot, strip.session, strip.state, strip.frame);
  draw_byte_grid(strip.canvas, axis, strip.frame);
  draw_difference_columns(strip, curve, axis, theme.bad, theme.accent);
  const double high = curve.values()[curve.highest()], low = curve.values()[curve.lowest()];
  const double largest = high > -low ? high : low;
  std::string note = (largest > 0 ? "+" : "") + size_text(static_cast<std::int64_t>(largest));
  if (curves.memory.by_op) note = "largest " + note + "; " + curves.begins_at;
  if (!curves.memory.by_op) note += " at one time: the traces have no op in common";
  draw_difference_note(strip, plot, note);
}

void draw_lateness(const DifferenceStrip& strip, const ComparedCurves& curves, const Rect& plot) {
  const Theme& theme = strip.frame.theme;
  const ByteAxis axis = difference_axis(curves.lateness, plot);
  draw_time_grid(strip.canvas, plot, strip.session, strip.state, strip.frame);
  draw_difference_columns(strip, curves.lateness, axis, theme.warning, theme.good);
  const double high = curves.lateness.values()[curves.lateness.highest()];
  const double low = curves.lateness.values()[curves.lateness.lowest()];
  const double most = high > -low ? high : low;
  draw_difference_note(strip, plot,
                       most == 0 ? "no op late or early"
                                 : "at most " + duration_text(static_cast<std::int64_t>(std::fabs(most))) +
                                       (most > 0 ? " late within a step" : " early within a step"));
}

}  // namespace

void draw_difference(const Session& session, const ViewState& state, Derived& derived, const Frame& frame,
                     const ComparedMemory& memory, const Rect& plot, const Rect& gutter) {
  const DifferenceStrip strip{session, state, derived, frame, Canvas(frame)};
  const ComparedCurves& curves = curves_of(strip, memory);
  const bool late = curves.lateness.size() > 0 && plot.height() >= frame.px(60);
  Rect bytes = plot, lateness = plot;
  if (late) {
    bytes.y1 = std::round(plot.y1 - plot.height() * kLatenessShare);
    lateness.y0 = bytes.y1 + frame.px(2);
  }
  const std::string pair = short_name(session, memory.document) + " \u2212 " + short_name(session, 0);
  strip.canvas.fill(bytes, mix(frame.theme.bar, frame.theme.pane, 0.35));
  frame.name("difference:" + std::to_string(memory.document), bytes);
  draw_difference_label(strip, gutter, bytes, "difference", pair);
  draw_memory_difference(strip, curves, bytes);
  if (!late) return;
  strip.canvas.fill(lateness, mix(frame.theme.bar, frame.theme.pane, 0.35));
  frame.name("lateness:" + std::to_string(memory.document), lateness);
  draw_difference_label(strip, gutter, lateness, "late by",
                        short_name(session, memory.document) + ", since the step's begin");
  draw_lateness(strip, curves, lateness);
}

}  // namespace shard::view
