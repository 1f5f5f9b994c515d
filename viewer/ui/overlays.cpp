// Search field, help, problems, loading.
#include "viewer/ui/overlays.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "viewer/ui/actions.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/overlay.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
void draw_search_field(const Session& session, ViewState& state, Derived& derived, const Frame& frame,
                       const Rect& area) {
  if (!state.search_open || session.empty()) return;
  const float width = std::min(frame.px(420), area.width() - frame.px(20));
  const Rect box{area.x1 - width - frame.px(10), area.y0 + frame.px(8), area.x1 - frame.px(10),
                 area.y0 + frame.px(8) + ImGui::GetFrameHeight() + frame.px(20)};
  const Overlay overlay("search", box, frame, ImGuiWindowFlags_NoScrollbar);
  if (state.search_focus) {
    ImGui::SetWindowFocus();
    ImGui::SetKeyboardFocusHere();
  }
  std::array<char, 256> text{};
  std::memcpy(text.data(), state.query.data(), std::min(state.query.size(), text.size() - 1));
  ImGui::SetNextItemWidth(frame.px(200));
  const bool entered =
      ImGui::InputTextWithHint("##query", "name of a span", text.data(), text.size(),
                               ImGuiInputTextFlags_AutoSelectAll | ImGuiInputTextFlags_EnterReturnsTrue);
  name_last("field:search", frame);
  if (!state.search_focus) state.query = text.data();
  state.search_focus = false;
  if (entered) {
    act(Action::next_match, session, state, derived);
    state.search_open = false;
  }
  ImGui::SameLine();
  const NameMatch& match = matches(session, state, derived);
  if (state.query.empty()) {
    hint("Enter: next, n / N: more", frame);
  } else {
    hint(match.empty() ? "nothing" : show_count(match.span_count) + " spans", frame);
    ImGui::SameLine();
    if (button("Clear", frame)) state.query.clear();
  }
}

void draw_help(ViewState& state, const Frame& frame, const Rect& area) {
  if (!state.help_open) return;
  std::size_t lines = 0;
  for (const Key& key : key_table()) lines += key.keys.empty() ? 0 : 1;
  const float height = std::min(area.height() - frame.px(20),
                                (static_cast<float>(lines) + 2) * ImGui::GetTextLineHeightWithSpacing() + frame.px(34));
  const float width = std::min(area.width() - frame.px(20), frame.px(560));
  const float x = std::round(area.x0 + (area.width() - width) / 2);
  const float y = std::round(area.y0 + (area.height() - height) / 2);
  const Overlay overlay("help", {x, y, x + width, y + height}, frame);
  heading("Keys", frame);
  ImGui::SameLine(width - frame.px(70));
  if (button("Close", frame)) state.help_open = false;
  for (const Key& key : key_table()) {
    if (key.keys.empty()) continue;
    ImGui::PushStyleColor(ImGuiCol_Text, frame.theme.accent);
    ImGui::TextUnformatted(key.keys.data(), key.keys.data() + key.keys.size());
    ImGui::PopStyleColor();
    ImGui::SameLine(frame.px(140));
    ImGui::TextUnformatted(key.what.data(), key.what.data() + key.what.size());
  }
}

float problems_height(const Session& session, const ViewState& state, const Frame& frame) {
  if (!state.problems_open || session.problems.empty()) return 0;
  const auto shown = static_cast<float>(std::min<std::size_t>(session.problems.size(), 3));
  return shown * (2 * frame.px(18) + frame.px(4)) + frame.px(8);
}

void draw_problems(const Session& session, ViewState& state, const Frame& frame, const Rect& area) {
  if (area.height() <= 0) return;
  const Canvas canvas(frame);
  canvas.fill(area, mix(frame.theme.warning, frame.theme.pane, 0.18));
  canvas.fill({area.x0, area.y0, area.x0 + frame.px(4), area.y1}, frame.theme.warning);
  float y = area.y0 + frame.px(4);
  const float line = frame.px(18);
  const float right = area.x1 - frame.px(80);
  for (std::size_t i = 0; i < std::min<std::size_t>(session.problems.size(), 3); ++i) {
    const Problem& problem = session.problems[i];
    const float left = area.x0 + frame.px(14);
    canvas.text_in({left, y, right, y + line}, problem.file + ": " + problem.what, frame.theme.text);
    canvas.text_in({left, y + line, right, y + 2 * line},
                   (problem.kept.empty() ? "nothing of it could be read" : problem.kept) +
                       (problem.help.empty() ? "" : "; try: " + problem.help),
                   frame.theme.dim);
    y += 2 * line + frame.px(4);
  }
  ImGui::SetCursorScreenPos(ImVec2(area.x1 - frame.px(72), area.y0 + frame.px(6)));
  if (button("Dismiss", frame)) state.problems_open = false;
}

void draw_nothing_open(const Session& session, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  canvas.fill(area, frame.theme.pane);
  const float width = std::min(frame.px(720), area.width() - frame.px(40));
  const float x = std::round(area.x0 + (area.width() - width) / 2);
  const float y = std::round(area.y0 + area.height() * 0.25F);
  // No height: as much as the text takes.
  const Overlay overlay("nothing", {x, y, x + width, y}, frame);
  heading(session.problems.empty() ? "Nothing is open" : "Nothing could be opened", frame);
  for (const Problem& problem : session.problems) {
    ImGui::Spacing();
    ImGui::PushStyleColor(ImGuiCol_Text, frame.theme.bad);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted((problem.file + ": " + problem.what).c_str());
    ImGui::PopTextWrapPos();
    ImGui::PopStyleColor();
    if (!problem.kept.empty()) hint(problem.kept, frame);
    if (!problem.help.empty()) hint("try: " + problem.help, frame);
  }
  ImGui::Spacing();
  hint("shardscope view TRACE...   opens traces; shardscope train and shardscope simulate write them with --trace.",
       frame);
}

void draw_loading(std::string_view what, double share, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  canvas.fill(area, frame.theme.pane);
  const float width = std::min(frame.px(420), area.width() - frame.px(40));
  const float x = std::round(area.x0 + (area.width() - width) / 2);
  const float y = std::round(area.y0 + area.height() * 0.42F);
  canvas.text(x, y - frame.px(26), what, frame.theme.text);
  canvas.fill({x, y, x + width, y + frame.px(8)}, frame.theme.grid);
  canvas.fill({x, y, x + width * static_cast<float>(std::clamp(share, 0.0, 1.0)), y + frame.px(8)}, frame.theme.accent);
}

}  // namespace shard::view
