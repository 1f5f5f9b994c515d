// The overlay's window.
#include "viewer/ui/overlay.h"

namespace shard::view {
namespace {

constexpr ImGuiWindowFlags kOverlay = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                      ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                                      ImGuiWindowFlags_NoCollapse;

}  // namespace

Overlay::Overlay(const char* name, const Rect& box, const Frame& frame, ImGuiWindowFlags flags) {
  ImGui::SetNextWindowPos(ImVec2(box.x0, box.y0));
  ImGui::SetNextWindowSize(ImVec2(box.width(), box.height()));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1.0F);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.px(4));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(frame.px(14), frame.px(10)));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, frame.theme.bar);
  ImGui::Begin(name, nullptr, kOverlay | flags);
}

Overlay::~Overlay() {
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

}  // namespace shard::view
