// Navigation by mouse and held keys.
#include "viewer/ui/plot.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

namespace shard::view {
namespace {

constexpr double kWheelStep = 1.25;
constexpr float kClickPath = 4;

}  // namespace

PlotMouse plot_mouse(const char* id, const Rect& area, const Session& session, ViewState& state, const Frame& frame) {
  PlotMouse mouse;
  if (area.width() < 1 || area.height() < 1) return mouse;
  ImGui::SetCursorScreenPos(ImVec2(area.x0, area.y0));
  ImGui::InvisibleButton(id, ImVec2(area.width(), area.height()));
  frame.name(std::string("plot:") + id, area);
  const ImGuiIO& io = ImGui::GetIO();
  const double width = area.width();
  mouse.x = io.MousePos.x;
  mouse.y = io.MousePos.y;
  const double x = mouse.x - area.x0;
  mouse.hovered = ImGui::IsItemHovered();
  const bool active = ImGui::IsItemActive();
  if (ImGui::IsItemActivated()) {
    state.drag = io.KeyShift ? Drag::range : Drag::pan;
    state.drag_from_ns = time_at(state.camera, x, width);
    state.drag_path = 0;
  }
  if (active) {
    state.drag_path += std::fabs(io.MouseDelta.x) + std::fabs(io.MouseDelta.y);
    if (state.drag_path >= kClickPath) {
      if (state.drag == Drag::range) {
        const std::int64_t here = time_at(state.camera, x, width);
        state.range = TimeRange{std::min(here, state.drag_from_ns), std::max(here, state.drag_from_ns) + 1};
      } else if (state.drag == Drag::pan) {
        state.camera = keep_near(pan(state.camera, io.MouseDelta.x, width), whole_range(session, state.align));
        mouse.dragged_y = io.MouseDelta.y;
      }
    }
  }
  if (ImGui::IsItemDeactivated()) {
    mouse.clicked = mouse.hovered && state.drag_path < kClickPath && state.drag != Drag::range;
    state.drag = Drag::none;
  }
  if (mouse.hovered) {
    mouse.double_clicked = ImGui::IsMouseDoubleClicked(0);
    // What the second press does moves the picture: its release is no click on what is there then.
    if (mouse.double_clicked) state.drag_path = kClickPath;
    if (io.MouseWheel != 0) {
      if (io.KeyCtrl) {
        mouse.wheel = io.MouseWheel;
      } else {
        state.camera = keep_near(zoom(state.camera, std::pow(kWheelStep, -io.MouseWheel), x, width),
                                 whole_range(session, state.align));
      }
    }
  }
  return mouse;
}

void zoom_to_range(const PlotMouse& mouse, ViewState& state) {
  if (mouse.double_clicked && state.range && state.hover_ns && state.range->contains(*state.hover_ns))
    state.camera = fit(state.camera.origin_ns, *state.range);
}

void move_by_keys(const Rect& axis, const Session& session, ViewState& state, const Frame& frame) {
  const ImGuiIO& io = ImGui::GetIO();
  // Text fields have the letters while they are active; control and alt are for others.
  if (io.WantTextInput || io.KeyCtrl || io.KeyAlt) return;
  const double width = axis.width();
  const bool over = io.MousePos.x >= axis.x0 && io.MousePos.x < axis.x1;
  const double x = over ? io.MousePos.x - axis.x0 : width / 2;
  Camera camera = state.camera;
  // Per second: a factor of 6, and one and a half screens.
  if (frame.keys.w) camera = zoom(camera, std::pow(6.0, -frame.seconds), x, width);
  if (frame.keys.s) camera = zoom(camera, std::pow(6.0, frame.seconds), x, width);
  if (frame.keys.a) camera = pan(camera, 1.5 * width * frame.seconds, width);
  if (frame.keys.d) camera = pan(camera, -1.5 * width * frame.seconds, width);
  if (!(camera == state.camera)) state.camera = keep_near(camera, whole_range(session, state.align));
}

}  // namespace shard::view
