// Pieces of side panes.
#include "viewer/ui/widgets.h"

#include <imgui.h>

#include <algorithm>

#include "viewer/ui/text.h"

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
  const float column = frame.px(118);
  const bool fits = ImGui::CalcTextSize(name.data(), name.data() + name.size()).x < column - frame.px(4);
  if (fits) {
    ImGui::SameLine(column);
  } else {
    ImGui::SetCursorPosX(column);
  }
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

namespace {

/// What fits of a name in the room there is: its last parts, else its begin with an ellipsis.
std::string fitted(std::string_view name) {
  const float room = ImGui::GetContentRegionAvail().x;
  const auto fits = [&](std::string_view text) {
    return ImGui::CalcTextSize(text.data(), text.data() + text.size()).x <= room;
  };
  std::string shown(fitting_tail(name, fits));
  if (!fits(shown)) {
    while (shown.size() > 1 && !fits(shown + "\u2026")) {
      // Not in the middle of a character of several bytes.
      do shown.pop_back();
      while (shown.size() > 1 && (static_cast<unsigned char>(shown.back()) & 0xC0U) == 0x80U);
    }
    shown += "\u2026";
  }
  return shown;
}

}  // namespace

void cell_text(std::string_view text) {
  const std::string shown = fitted(text);
  ImGui::TextUnformatted(shown.c_str());
  if (shown != text && ImGui::IsItemHovered()) ImGui::SetTooltip("%.*s", static_cast<int>(text.size()), text.data());
}

bool table_line(std::string_view name, int id, const Frame& frame) {
  const std::string shown = fitted(name);
  const bool all = shown == name;
  ImGui::PushID(id);
  const bool clicked = ImGui::Selectable("##line", false, ImGuiSelectableFlags_SpanAllColumns);
  if (!all && ImGui::IsItemHovered()) ImGui::SetTooltip("%.*s", static_cast<int>(name.size()), name.data());
  if (frame.items != nullptr) name_last("line:" + std::to_string(id), frame);
  ImGui::SameLine(0, 0);
  ImGui::TextUnformatted(shown.c_str());
  ImGui::PopID();
  return clicked;
}

void table_heading(std::initializer_list<const char*> titles, int right_from, const Frame& frame) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  int column = 0;
  const ImGuiTableSortSpecs* sorting = ImGui::TableGetSortSpecs();
  for (const char* title : titles) {
    ImGui::TableSetColumnIndex(column);
    const bool right = column >= right_from;
    const float start = ImGui::GetCursorPosX();
    const float room = ImGui::GetContentRegionAvail().x;
    ImGui::TableHeader(right ? (std::string("##") + title).c_str() : title);
    name_last(std::string("header:") + title, frame);
    if (right) {
      const bool sorted = sorting != nullptr && sorting->SpecsCount > 0 && sorting->Specs[0].ColumnIndex == column;
      const float arrow = sorted ? ImGui::GetFontSize() * 0.75F : 0;
      ImGui::SameLine();
      ImGui::SetCursorPosX(start + std::max(0.0F, room - ImGui::CalcTextSize(title).x - arrow));
      ImGui::TextUnformatted(title);
    }
    ++column;
  }
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
