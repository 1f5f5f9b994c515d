// The largest differences between two documents.
#include <imgui.h>

#include <cmath>

#include "viewer/index/ticks.h"
#include "viewer/ui/actions.h"
#include "viewer/ui/side_panes.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

std::string seconds_text(double seconds) {
  return duration_text(static_cast<std::int64_t>(std::llround(seconds * 1e9)));
}

/// What the collectives of a steady step waited (of the first where there is no other), in the order of the traces
/// compared.
std::pair<double, double> steady_waiting(const Comparison& comparison) {
  std::pair<double, double> sum;
  for (const Phase phase : {Phase::steady_step, Phase::first_step}) {
    for (const GroupComparison& stream : comparison.streams) {
      if (stream.phase != phase) continue;
      sum.first += stream.waiting_seconds.first;
      sum.second += stream.waiting_seconds.second;
    }
    if (sum.first > 0 || sum.second > 0) break;
  }
  return sum;
}

void draw_summary(const Session& session, ViewState& state, const Frame& frame, const CompareView& view,
                  std::size_t other) {
  const Comparison& c = view.comparison;
  const auto in_order = [&](double a, double b) { return view.swapped ? std::pair(b, a) : std::pair(a, b); };
  const auto [own, theirs] = in_order(c.step_seconds.first, c.step_seconds.second);
  heading(short_name(session, other) + " against " + short_name(session, 0), frame);
  if (!c.same_plan) {
    ImGui::PushStyleColor(ImGuiCol_Text, frame.theme.warning);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(
        "The plans differ, and are lined up because --force was given: ops of one number may be different ops.");
    ImGui::PopTextWrapPos();
    ImGui::PopStyleColor();
  }
  std::string step = seconds_text(own) + "  \u2192  " + seconds_text(theirs);
  if (own > 0 && theirs > 0) step += "  (" + show_number(theirs / own) + " x)";
  fact("step", step, frame);
  if (const auto [a, b] = steady_waiting(c); a > 0 || b > 0) {
    const auto [first, second] = in_order(a, b);
    fact("waiting", seconds_text(first) + "  \u2192  " + seconds_text(second) + ", all ranks; not in the times below",
         frame);
  }
  ImGui::PushStyleColor(ImGuiCol_Text, c.memory_equal() ? frame.theme.good : frame.theme.bad);
  fact("memory",
       !c.memory_equal()         ? "differs"
       : c.memory_by_op.compared ? "equal at every op"
                                 : "every compared peak is equal",
       frame);
  ImGui::PopStyleColor();
  ImGui::PushStyleColor(ImGuiCol_Text, c.communication_equal() ? frame.theme.good : frame.theme.bad);
  fact("communication", c.communication_equal() ? "counts and bytes are equal" : "counts or bytes differ", frame);
  ImGui::PopStyleColor();
  fact("ops",
       show_count(c.joined_op_count) + " in both; " + show_count(c.unmatched_op_count.first) + " and " +
           show_count(c.unmatched_op_count.second) + " in one only",
       frame);
  fact("aligned by", alignment_of(session, state.align, other).text(), frame);
}

}  // namespace

void draw_residuals(const Session& session, ViewState& state, const Frame& frame) {
  if (session.compared.empty()) {
    hint("Open two traces of one plan to see where they differ: shardscope view predicted.sst measured.sst", frame);
    return;
  }
  const std::size_t other = compared_document(state);
  const CompareView& view = session.compared[other - 1];
  draw_summary(session, state, frame, view, other);
  ImGui::Spacing();
  for (const AlignMode mode : {AlignMode::step, AlignMode::stretch, AlignMode::clock}) {
    if (mode != AlignMode::step) ImGui::SameLine(0, frame.px(4));
    const char* label = mode == AlignMode::step ? "Step begin" : mode == AlignMode::stretch ? "Stretched" : "Clock";
    if (toggle(label, state.align == mode, frame)) state.align = mode;
  }
  ImGui::SameLine(0, frame.px(14));
  if (toggle("Time", !state.residuals_by_bytes, frame)) state.residuals_by_bytes = false;
  ImGui::SameLine(0, frame.px(4));
  if (toggle("Bytes", state.residuals_by_bytes, frame)) state.residuals_by_bytes = true;

  const bool bytes = state.residuals_by_bytes;
  const std::vector<Residual>& rows = bytes ? view.by_bytes : view.by_time;
  if (rows.empty()) {
    hint(bytes ? "Every op moves the same bytes in both." : "No op is in both traces.", frame);
    return;
  }
  if (!ImGui::BeginTable("residuals", 5, ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("op", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("rank", ImGuiTableColumnFlags_WidthFixed, frame.px(32));
  ImGui::TableSetupColumn(short_name(session, 0).c_str(), ImGuiTableColumnFlags_WidthFixed, frame.px(70));
  ImGui::TableSetupColumn(short_name(session, other).c_str(), ImGuiTableColumnFlags_WidthFixed, frame.px(70));
  ImGui::TableSetupColumn("residual", ImGuiTableColumnFlags_WidthFixed, frame.px(76));
  const std::string first_name = short_name(session, 0);
  const std::string other_name = short_name(session, other);
  table_heading({"op", "rank", first_name.c_str(), other_name.c_str(), "residual"}, 2, frame);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const Residual& row = rows[static_cast<std::size_t>(i)];
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const std::string name = row.op.name.empty() ? "op " + std::to_string(row.op.op.value) : row.op.name;
      if (table_line(name, i, frame)) {
        if (row.first_span) {
          go_to_span(session, state, {0, *row.first_span}, true);
        } else if (row.other_span) {
          go_to_span(session, state, {other, *row.other_span}, true);
        }
      }
      if (frame.items != nullptr) name_last("residual:" + std::to_string(i), frame);
      ImGui::TableNextColumn();
      ImGui::Text("%d", row.op.rank.value);
      const auto& first = view.swapped ? row.op.seconds.second : row.op.seconds.first;
      const auto& second = view.swapped ? row.op.seconds.first : row.op.seconds.second;
      const auto& first_bytes = view.swapped ? row.op.bytes.second : row.op.bytes.first;
      const auto& second_bytes = view.swapped ? row.op.bytes.first : row.op.bytes.second;
      ImGui::TableNextColumn();
      right_text(bytes ? size_text(first_bytes) : seconds_text(first), true);
      ImGui::TableNextColumn();
      right_text(bytes ? size_text(second_bytes) : seconds_text(second), true);
      ImGui::TableNextColumn();
      const double difference = bytes ? static_cast<double>(row.bytes) : row.seconds;
      ImGui::PushStyleColor(ImGuiCol_Text, difference > 0 ? frame.theme.bad : frame.theme.good);
      right_text(with_sign(bytes ? size_text(row.bytes) : seconds_text(row.seconds), difference));
      ImGui::PopStyleColor();
    }
  }
  ImGui::EndTable();
}

}  // namespace shard::view
