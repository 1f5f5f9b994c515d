// Parts of panes.
#include "viewer/ui/pane_parts.h"

#include <algorithm>
#include <cmath>

#include "viewer/index/ticks.h"
#include "viewer/ui/metrics.h"

namespace shard::view {
namespace {

/// Of a plot: a range that fills more of it is not tinted.
constexpr float kTinted = 0.8F;

}  // namespace

PaneArea cut_pane(const Rect& area, const Frame& frame) {
  const float title = std::min(area.y1, area.y0 + frame.px(kTitleHeight));
  const float gutter = std::min(area.x1, area.x0 + frame.px(kGutter));
  return {{area.x0, area.y0, area.x1, title}, {area.x0, title, gutter, area.y1}, {gutter, title, area.x1, area.y1}};
}

void draw_pane_ground(const Canvas& canvas, const PaneArea& area, std::string_view title, std::string_view note,
                      const Frame& frame) {
  const Theme& theme = frame.theme;
  const float pad = frame.px(kPad);
  canvas.fill(area.title, theme.bar);
  canvas.fill(area.gutter, mix(theme.bar, theme.pane, 0.5));
  canvas.fill(area.plot, theme.pane);
  canvas.text_in({area.title.x0 + pad, area.title.y0, area.title.x1 - pad, area.title.y1}, title, theme.text,
                 frame.fonts.bold);
  const float from = area.title.x0 + pad + canvas.width_of(title, frame.fonts.bold) + frame.px(20);
  const float room = area.title.x1 - pad - from;
  const float width = canvas.width_of(note, frame.fonts.small);
  canvas.text_in({std::max(from, from + room - width - 1), area.title.y0, area.title.x1 - pad, area.title.y1}, note,
                 theme.dim, frame.fonts.small);
}

float x_in(const Rect& plot, const ViewState& state, std::int64_t time_ns) {
  const double x = x_of(state.camera, time_ns, plot.width());
  // Far outside is as good as infinitely far, and fits a float.
  return plot.x0 + static_cast<float>(std::clamp(x, -1e5, 1e5));
}

void draw_time_grid(const Canvas& canvas, const Rect& plot, const Session& session, const ViewState& state,
                    const Frame& frame) {
  for (const Tick& tick : time_ticks(state.camera, state.camera.origin_ns, plot.width(), frame.px(100)))
    canvas.vertical(plot.x0 + static_cast<float>(tick.position), plot.y0, plot.y1, frame.theme.grid);
  if (session.empty()) return;
  // Where steps are narrow, lines between them are no orientation.
  const std::vector<StepTime>& steps = session.documents[0].steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const float x = x_in(plot, state, steps[i].begin_ns);
    if (x < plot.x0 || x >= plot.x1) continue;
    const std::int64_t end = i + 1 < steps.size() ? steps[i + 1].begin_ns : steps[i].end_ns;
    if (x_in(plot, state, end) - x >= frame.px(24)) canvas.vertical(x, plot.y0, plot.y1, frame.theme.border);
  }
}

void draw_time_marks(const Canvas& canvas, const Rect& plot, const ViewState& state, const Frame& frame) {
  const Clip clip(canvas, plot);
  if (state.range) {
    const float x0 = x_in(plot, state, state.range->begin_ns);
    const float x1 = std::max(x0 + 1, x_in(plot, state, state.range->end_ns));
    // Where hardly anything else is in view the tint would tell nothing, and change every colour.
    const float left = std::max(plot.x0, x0), right = std::min(plot.x1, x1);
    if (right - left < plot.width() * kTinted) canvas.fill({left, plot.y0, right, plot.y1}, frame.theme.selection);
    canvas.vertical(x0, plot.y0, plot.y1, frame.theme.accent);
    canvas.vertical(x1, plot.y0, plot.y1, frame.theme.accent);
  }
  for (const Note& note : state.notes) {
    const float x = x_in(plot, state, note.time_ns);
    if (x >= plot.x0 && x < plot.x1) canvas.vertical(x, plot.y0, plot.y1, with_alpha(frame.theme.warning, 110));
  }
  if (state.marker_ns) canvas.vertical(x_in(plot, state, *state.marker_ns), plot.y0, plot.y1, frame.theme.warning);
  if (state.hover_ns)
    canvas.vertical(x_in(plot, state, *state.hover_ns), plot.y0, plot.y1, with_alpha(frame.theme.cursor, 90));
}

void draw_empty(const Canvas& canvas, const Rect& area, std::string_view what, std::string_view help,
                const Frame& frame) {
  const float line = canvas.line_height() + frame.px(4);
  const float middle = area.x0 + area.width() / 2;
  const float top = std::round(area.y0 + (area.height() - (help.empty() ? line : 2 * line)) / 2);
  const Clip clip(canvas, area);
  canvas.text(std::max(area.x0 + frame.px(kPad), middle - canvas.width_of(what) / 2), top, what, frame.theme.dim);
  if (!help.empty()) {
    const float width = canvas.width_of(help, frame.fonts.small);
    canvas.text(std::max(area.x0 + frame.px(kPad), middle - width / 2), top + line, help, frame.theme.dim, Anchor::left,
                frame.fonts.small);
  }
}

std::vector<std::string> wrapped(const Canvas& canvas, std::string_view text, float width, ImFont* font) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
    const std::string longer = line.empty() ? word : line + " " + word;
    if (!line.empty() && canvas.width_of(longer, font) > width) {
      lines.push_back(line);
      line = word;
    } else {
      line = longer;
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace shard::view
