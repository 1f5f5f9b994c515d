// Tool bar and status line.
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "viewer/index/ticks.h"
#include "viewer/ui/actions.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/overlays.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

void choose_rank(const Session& session, ViewState& state, const Frame& frame) {
  const std::vector<Rank>& ranks = session.documents[0].ranks();
  if (ranks.size() < 2) return;
  const auto name = [](Rank rank) { return rank.valid() ? "rank " + std::to_string(rank.value) : "all ranks"; };
  ImGui::SetNextItemWidth(frame.px(96));
  if (ImGui::BeginCombo("##rank", name(state.rank).c_str())) {
    if (ImGui::Selectable("all ranks", !state.rank.valid())) state.rank = {};
    name_last("rank:all", frame);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(ranks.size()));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const Rank rank = ranks[static_cast<std::size_t>(i)];
        if (ImGui::Selectable(name(rank).c_str(), rank == state.rank)) state.rank = rank;
        name_last("rank:" + std::to_string(rank.value), frame);
      }
    }
    ImGui::EndCombo();
  }
  name_last("combo:rank", frame);
  ImGui::SameLine();
}

void choose_memory(const Session& session, ViewState& state, const Frame& frame) {
  bool has[kMemoryCount]{};
  int count = 0;
  for (const MemorySeries& series : session.documents[0].memory()) {
    bool& known = has[static_cast<std::size_t>(series.memory())];
    if (!known) ++count;
    known = true;
  }
  if (count < 2) return;
  const MemorySeries* shown = shown_memory(session.documents[0], state);
  ImGui::SetNextItemWidth(frame.px(96));
  if (ImGui::BeginCombo("##memory", shown == nullptr ? "memory" : to_string(shown->memory()))) {
    for (int m = 0; m < kMemoryCount; ++m) {
      const auto memory = static_cast<Memory>(m);
      if (has[m] && ImGui::Selectable(to_string(memory), shown != nullptr && shown->memory() == memory))
        state.memory = memory;
    }
    ImGui::EndCombo();
  }
  name_last("combo:memory", frame);
  ImGui::SameLine();
}

void choose_document(const Session& session, ViewState& state, const Frame& frame) {
  if (session.documents.size() < 2) return;
  ImGui::SetNextItemWidth(frame.px(130));
  if (ImGui::BeginCombo("##document", short_name(session, state.document).c_str())) {
    for (std::size_t i = 0; i < session.documents.size(); ++i) {
      if (ImGui::Selectable((short_name(session, i) + "##" + std::to_string(i)).c_str(), i == state.document))
        state.document = i;
      name_last("document:" + std::to_string(i), frame);
    }
    ImGui::EndCombo();
  }
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("the trace that the chunk map and the tables are about, and whose difference is shown");
  name_last("combo:document", frame);
  ImGui::SameLine();
}

}  // namespace

void draw_toolbar(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  canvas.fill(area, frame.theme.bar);
  canvas.horizontal(area.x0, area.x1, area.y1 - 1, frame.theme.border);
  ImGui::SetCursorScreenPos(ImVec2(area.x0 + frame.px(kPad), area.y0 + frame.px(5)));
  ImGui::AlignTextToFramePadding();
  heading("Shardscope", frame);
  ImGui::SameLine(0, frame.px(18));
  if (!session.empty()) {
    if (button("Fit", frame)) act(Action::fit, session, state, derived);
    ImGui::SameLine();
    if (button("Peak", frame)) act(Action::peak, session, state, derived);
    ImGui::SameLine();
    if (button("Search", frame)) act(Action::search, session, state, derived);
    ImGui::SameLine(0, frame.px(18));
    choose_rank(session, state, frame);
    choose_memory(session, state, frame);
    choose_document(session, state, frame);
  }
  std::string names;
  for (const Document& document : session.documents) names += (names.empty() ? "" : "  \u00b7  ") + document.label();
  if (!session.empty()) {
    const auto& metadata = session.documents[0].trace().header.metadata;
    if (const auto model = metadata.find("model"); model != metadata.end())
      names = model->second + "  \u00b7  " + names;
  }
  const char* other_theme = state.theme == ThemeName::dark ? "Light" : "Dark";
  const ImGuiStyle& style = ImGui::GetStyle();
  float buttons = frame.px(kPad) + 2 * style.ItemSpacing.x;
  for (const char* label : {other_theme, "Side", "?"})
    buttons += ImGui::CalcTextSize(label).x + 2 * style.FramePadding.x;
  const float right = std::round(area.x1 - buttons);
  const float left = ImGui::GetCursorScreenPos().x + frame.px(12);
  canvas.text_in({left, area.y0, right - frame.px(8), area.y1}, names, frame.theme.dim);
  ImGui::SetCursorScreenPos(ImVec2(right, area.y0 + frame.px(5)));
  if (button(other_theme, frame)) act(Action::theme, session, state, derived);
  ImGui::SameLine();
  if (toggle("Side", state.side_open, frame)) act(Action::side_panel, session, state, derived);
  ImGui::SameLine();
  if (button("?", frame)) act(Action::help, session, state, derived);
}

void draw_status(const Session& session, const ViewState& state, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  canvas.fill(area, frame.theme.bar);
  canvas.horizontal(area.x0, area.x1, area.y0, frame.theme.border);
  std::string right = "view " + duration_text(visible(state.camera).length_ns());
  if (state.hover_ns) right = "at " + exact_time_text(*state.hover_ns - state.camera.origin_ns) + "   " + right;
  if (state.range) right = "range " + duration_text(state.range->length_ns()) + "   " + right;
  const float pad = frame.px(kPad);
  const float width = canvas.width_of(right, frame.fonts.small);
  canvas.text(area.x1 - pad, area.y0 + std::round((area.height() - canvas.line_height(frame.fonts.small)) / 2), right,
              frame.theme.dim, Anchor::right, frame.fonts.small);
  std::string left = state.notice;
  if (left.empty() && session.documents.size() > 1)
    left = short_name(session, compared_document(state)) +
           " lined up: " + alignment_of(session, state.align, compared_document(state)).text();
  if (left.empty()) left = "? shows every key";
  canvas.text_in({area.x0 + pad, area.y0, area.x1 - pad - width - frame.px(20), area.y1}, left, frame.theme.dim,
                 frame.fonts.small);
}

}  // namespace shard::view
