// Statistics of the selected range, or of what is visible.
#include <imgui.h>

#include <array>

#include "viewer/index/ticks.h"
#include "viewer/ui/actions.h"
#include "viewer/ui/side_panes.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

struct StatisticsColumn {
  const char* title;
  SpanColumn column;
  float width;  ///< logical pixels; 0: what is left
};
constexpr std::array<StatisticsColumn, 5> kColumns{{{"what", SpanColumn::key, 0},
                                                    {"count", SpanColumn::count, 58},
                                                    {"total", SpanColumn::total, 72},
                                                    {"mean", SpanColumn::mean, 72},
                                                    {"share", SpanColumn::share, 52}}};

void draw_spans(const Session& session, ViewState& state, Derived& derived, const Frame& frame,
                std::vector<SpanStatistics>& rows, float height) {
  const Document& document = session.documents[state.document];
  if (!ImGui::BeginTable("spans", static_cast<int>(kColumns.size()),
                         ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_Sortable, ImVec2(0, height)))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const StatisticsColumn& column : kColumns) {
    const ImGuiTableColumnFlags flags =
        (column.width == 0 ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed) |
        (column.column == SpanColumn::key ? 0 : ImGuiTableColumnFlags_PreferSortDescending) |
        (column.column == state.sort ? ImGuiTableColumnFlags_DefaultSort : 0);
    ImGui::TableSetupColumn(column.title, flags, frame.px(column.width), static_cast<ImGuiID>(column.column));
  }
  table_heading({"what", "count", "total", "mean", "share"}, 1, frame);
  if (ImGuiTableSortSpecs* sorting = ImGui::TableGetSortSpecs();
      sorting != nullptr && sorting->SpecsDirty && sorting->SpecsCount > 0) {
    state.sort = static_cast<SpanColumn>(sorting->Specs[0].ColumnUserID);
    state.descending = sorting->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    sorting->SpecsDirty = false;
  }
  if (derived.statistics_sorted != std::pair(state.sort, state.descending)) {
    sort_rows(rows, state.sort, state.descending);
    derived.statistics_sorted = {state.sort, state.descending};
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const SpanStatistics& row = rows[static_cast<std::size_t>(i)];
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const bool names = state.group == GroupBy::name;
      if (table_line(names ? row.key : in_words(row.key), i, frame) && names) {
        state.query = std::string(document.trace().name_of(row.name));
        act(Action::next_match, session, state, derived);
        state.tab = Pane::statistics;
      }
      if (frame.items != nullptr) name_last("statistics:" + row.key, frame);
      ImGui::TableNextColumn();
      right_text(show_count(row.count));
      ImGui::TableNextColumn();
      right_text(duration_text(row.total_ns));
      ImGui::TableNextColumn();
      right_text(duration_text(static_cast<std::int64_t>(row.mean_ns)));
      ImGui::TableNextColumn();
      right_text(show_percent(row.share), true);
    }
  }
  ImGui::EndTable();
}

void draw_memory_rows(const std::vector<MemoryStatistics>& rows, const Frame& frame) {
  if (!ImGui::BeginTable("memory", 5, ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("rank", ImGuiTableColumnFlags_WidthFixed, frame.px(38));
  ImGui::TableSetupColumn("memory", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("acquired", ImGuiTableColumnFlags_WidthFixed, frame.px(72));
  ImGui::TableSetupColumn("peak", ImGuiTableColumnFlags_WidthFixed, frame.px(72));
  ImGui::TableSetupColumn("at end", ImGuiTableColumnFlags_WidthFixed, frame.px(72));
  table_heading({"rank", "memory", "acquired", "peak", "at end"}, 2, frame);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const MemoryStatistics& row = rows[static_cast<std::size_t>(i)];
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::Text("%d", row.rank.value);
      ImGui::TableNextColumn();
      swatch(frame.theme.category[static_cast<std::size_t>(row.category)], frame);
      std::string what = in_words(to_string(row.category));
      if (row.memory != Memory::device) what += std::string(", ") + to_string(row.memory);
      ImGui::TextUnformatted(what.c_str());
      ImGui::TableNextColumn();
      right_text(size_text(row.acquired_bytes));
      ImGui::TableNextColumn();
      right_text(size_text(row.peak_bytes));
      ImGui::TableNextColumn();
      right_text(size_text(row.end_bytes));
    }
  }
  ImGui::EndTable();
}

}  // namespace

void draw_statistics(const Session& session, ViewState& state, Derived& derived, const Frame& frame) {
  if (session.empty()) {
    hint("Nothing is open.", frame);
    return;
  }
  const Document& document = session.documents[state.document];
  TimeRange range = range_of_interest(state);
  if (state.document != 0) range = alignment_of(session, state.align, state.document).to_other(range);
  std::string title = state.range ? "Selected range, " : "Visible range, ";
  heading(title + duration_text(range.length_ns()), frame);
  if (!state.range) hint("Shift + drag over the timeline selects a range.", frame);
  for (const GroupBy by : {GroupBy::name, GroupBy::span_class, GroupBy::stream, GroupBy::rank}) {
    if (by != GroupBy::name) ImGui::SameLine(0, frame.px(4));
    const char* label = by == GroupBy::name         ? "Name"
                        : by == GroupBy::span_class ? "Class"
                        : by == GroupBy::stream     ? "Stream"
                                                    : "Rank";
    if (toggle(label, state.group == by, frame)) state.group = by;
  }
  const RangeKey key(range.begin_ns, range.end_ns);
  std::vector<SpanStatistics>& rows =
      derived.statistics.get({state.document, key, static_cast<int>(state.group), state.rank.value}, [&] {
        derived.statistics_sorted = {SpanColumn::total, true};
        return span_statistics(document, range, state.group, state.rank);
      });
  const std::vector<MemoryStatistics>& memory = derived.memory_statistics.get(
      {state.document, key, state.rank.value}, [&] { return memory_statistics(document, range, state.rank); });
  ImGui::SameLine(0, frame.px(14));
  if (button("Copy as CSV", frame)) {
    ImGui::SetClipboardText((to_csv(rows) + "\n" + to_csv(memory)).c_str());
    state.notice = "both tables are in the clipboard as CSV";
  }
  const float room = ImGui::GetContentRegionAvail().y;
  if (rows.empty()) {
    hint("No span touches this range.", frame);
  } else {
    draw_spans(session, state, derived, frame, rows, memory.empty() ? 0 : room * 0.6F);
  }
  if (!memory.empty()) {
    ImGui::Spacing();
    draw_memory_rows(memory, frame);
  }
}

}  // namespace shard::view
