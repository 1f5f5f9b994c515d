// Pieces of side panes.
#include "viewer/ui/widgets.h"

#include <imgui.h>

#include <algorithm>

namespace shard::view {

void heading(std::string_view text, const Frame& frame) {
  ImGui::PushFont(frame.fonts.bold);
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopFont();
}

void fact(std::string_view name, std::string_view value, const Frame& frame) {
  ImGui::PushStyleColor(ImGuiCol_Text, frame.theme.dim);
  ImGui::TextUnformatted(name.data(), name.data() + name.size());
  ImGui::PopStyleColor();
  ImGui::SameLine(frame.px(118));
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(value.data(), value.data() + value.size());
  ImGui::PopTextWrapPos();
}

void hint(std::string_view text, const Frame& frame) {
  ImGui::PushStyleColor(ImGuiCol_Text, frame.theme.dim);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
}

void name_last(std::string_view name, const Frame& frame) {
  if (frame.items == nullptr) return;
  const ImVec2 low = ImGui::GetItemRectMin();
  const ImVec2 high = ImGui::GetItemRectMax();
  frame.name(name, {low.x, low.y, high.x, high.y});
}

bool button(const char* label, const Frame& frame) {
  const bool pressed = ImGui::Button(label);
  if (frame.items != nullptr) name_last(std::string("button:") + label, frame);
  return pressed;
}

bool toggle(const char* label, bool on, const Frame& frame) {
  if (on) {
    ImGui::PushStyleColor(ImGuiCol_Button, mix(frame.theme.accent, frame.theme.bar, 0.45));
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, mix(frame.theme.accent, frame.theme.bar, 0.55));
  }
  const bool pressed = button(label, frame);
  if (on) ImGui::PopStyleColor(2);
  return pressed;
}

void swatch(Color color, const Frame& frame) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float size = frame.px(10);
  const float top = at.y + (ImGui::GetTextLineHeight() - size) / 2;
  ImGui::GetWindowDrawList()->AddRectFilled(ImVec2(at.x, top), ImVec2(at.x + size, top + size), color);
  ImGui::Dummy(ImVec2(size, ImGui::GetTextLineHeight()));
  ImGui::SameLine(0, frame.px(5));
}

void right_text(std::string_view text, bool dim) {
  const float width = ImGui::CalcTextSize(text.data(), text.data() + text.size()).x;
  const float room = ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, room - width));
  if (dim) ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetStyleColorVec4(ImGuiCol_TextDisabled));
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  if (dim) ImGui::PopStyleColor();
}

}  // namespace shard::view
