// Minimap and ruler.
#include "viewer/ui/time_axis.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "viewer/index/ticks.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/notes.h"
#include "viewer/ui/pane_parts.h"
#include "viewer/ui/plot.h"

namespace shard::view {

void draw_minimap(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  const Theme& theme = frame.theme;
  const Rect plot{area.x0 + frame.px(kGutter), area.y0, area.x1, area.y1};
  canvas.fill(area, theme.bar);
  canvas.text_in({area.x0 + frame.px(kPad), area.y0, plot.x0, area.y1}, "Whole trace", theme.dim, frame.fonts.small);
  const TimeRange whole = whole_range(session, state.align);
  if (whole.empty() || plot.width() < 1) return;
  const PixelRange view{whole, static_cast<std::int32_t>(plot.width())};
  if (const MemorySeries* series = shown_memory(session.documents[0], state)) {
    series->columns(session.documents[0].trace().memory, view, derived.columns);
    const float top = static_cast<float>(std::max<std::int64_t>(series->peak_bytes(), 1));
    for (std::size_t i = 0; i < derived.columns.size(); ++i) {
      const float height = (plot.height() - 3) * static_cast<float>(derived.columns[i].highest_bytes) / top;
      const float x = plot.x0 + static_cast<float>(i);
      canvas.fill({x, plot.y1 - height, x + 1, plot.y1}, mix(theme.accent, theme.bar, 0.45));
    }
  } else {
    for (const StepTime& step : session.documents[0].steps()) {
      const auto x0 = static_cast<float>(view.column_of(step.begin_ns));
      const auto x1 = static_cast<float>(view.column_of(step.end_ns));
      canvas.fill({plot.x0 + x0, plot.y0 + 4, plot.x0 + std::max(x0 + 1, x1 - 1), plot.y1 - 4},
                  mix(theme.accent, theme.bar, 0.35));
    }
  }
  const Camera all{whole.begin_ns, 0, static_cast<double>(whole.length_ns())};
  const TimeRange seen = visible(state.camera);
  const double width = plot.width();
  const auto x0 = static_cast<float>(std::clamp(x_of(all, seen.begin_ns, width), 0.0, width - 3));
  const auto x1 = static_cast<float>(std::clamp(x_of(all, seen.end_ns, width), x0 + 3.0, width));
  canvas.fill({plot.x0, plot.y0, plot.x0 + x0, plot.y1}, with_alpha(theme.background, 150));
  canvas.fill({plot.x0 + x1, plot.y0, plot.x1, plot.y1}, with_alpha(theme.background, 150));
  canvas.outline({plot.x0 + x0, plot.y0, plot.x0 + x1, plot.y1}, theme.accent);

  ImGui::SetCursorScreenPos(ImVec2(plot.x0, plot.y0));
  ImGui::InvisibleButton("minimap", ImVec2(plot.width(), plot.height()));
  frame.name("minimap", plot);
  if (ImGui::IsItemActive())
    state.camera = keep_near(center(state.camera, time_at(all, ImGui::GetIO().MousePos.x - plot.x0, width)), whole);
}

void draw_ruler(const Session& session, ViewState& state, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  const Theme& theme = frame.theme;
  const Rect plot{area.x0 + frame.px(kGutter), area.y0, area.x1, area.y1};
  canvas.fill(area, theme.pane);
  const PlotMouse mouse = plot_mouse("ruler", plot, session, state, frame);
  zoom_to_range(mouse, state);
  const float half = std::round(area.height() / 2);
  {
    const Clip clip(canvas, plot);
    float free_from = plot.x0 - frame.px(100);
    for (const Tick& tick : time_ticks(state.camera, state.camera.origin_ns, plot.width(), frame.px(100))) {
      const float x = plot.x0 + static_cast<float>(tick.position);
      canvas.vertical(x, area.y0, area.y0 + frame.px(5), theme.border);
      if (tick.label.empty()) continue;
      // At the right edge a label turns to the other side of its tick rather than being cut, where there is room.
      const float width = canvas.width_of(tick.label, frame.fonts.small);
      const bool turned = x + width + frame.px(4) > plot.x1;
      const float left = turned ? x - width - frame.px(3) : x + frame.px(3);
      if (left < free_from) continue;
      free_from = left + width + frame.px(8);
      canvas.text(left, area.y0 + frame.px(1), tick.label, theme.dim, Anchor::left, frame.fonts.small);
    }
    draw_note_flags(canvas, plot, state, mouse, frame);
    if (!session.empty()) {
      float last = -1e9F;
      const std::vector<StepTime>& steps = session.documents[0].steps();
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const StepTime& step = steps[i];
        const float x0 = x_in(plot, state, step.begin_ns);
        // A rank may begin the next step before another has ended this one.
        float x1 = x_in(plot, state, step.end_ns);
        if (i + 1 < steps.size()) x1 = std::min(x1, x_in(plot, state, steps[i + 1].begin_ns));
        if (x1 < plot.x0 || x0 >= plot.x1 || x0 - last < frame.px(3)) continue;
        last = x0;
        const Rect box{std::max(plot.x0, x0), area.y0 + half, std::min(plot.x1, x1 - 1), area.y1 - 1};
        if (box.width() < 1) continue;
        canvas.fill(box, mix(step.phase == Phase::first_step ? theme.warning : theme.accent, theme.pane, 0.22));
        canvas.vertical(box.x0, box.y0, box.y1, theme.accent);
        const std::string name =
            "step " + std::to_string(step.step) + "   " + duration_text(step.end_ns - step.begin_ns);
        canvas.text_in({box.x0 + frame.px(5), box.y0, box.x1 - frame.px(2), box.y1}, name, theme.text,
                       frame.fonts.small);
      }
    }
  }
  canvas.text_in({area.x0 + frame.px(kPad), area.y0, plot.x0 - 4, area.y0 + half}, "Time", theme.dim,
                 frame.fonts.small);
  canvas.text_in({area.x0 + frame.px(kPad), area.y0 + half, plot.x0 - 4, area.y1}, "Steps", theme.dim,
                 frame.fonts.small);
  canvas.horizontal(area.x0, area.x1, area.y1 - 1, theme.border);
}

}  // namespace shard::view
