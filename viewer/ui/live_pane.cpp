// What is live at the marker.
#include <imgui.h>

#include <algorithm>
#include <optional>

#include "viewer/index/ticks.h"
#include "viewer/ui/actions.h"
#include "viewer/ui/allocator.h"
#include "viewer/ui/side_panes.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {

namespace {

/// What the rows of the table are about.
struct Of {
  const Session& session;
  ViewState& state;
  Derived& derived;
  const Frame& frame;
  const MemorySeries& series;
  std::optional<BlockView> blocks{};  ///< of an allocator's recording
};

/// The first two columns: what a buffer is, and whose. A click selects the block, or goes to the op.
void draw_names(const Of& of, const LiveBuffer& buffer, int row) {
  const Document& document = of.session.documents[of.state.document];
  const Frame& frame = of.frame;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const std::uint32_t block = of.blocks ? of.blocks->blocks.acquired_by(buffer.event) : kNone;
  const bool by_site = block != kNone && of.blocks->by != MemoryBy::category;
  swatch(by_site ? color_of(*of.blocks, of.blocks->classes.of(block), frame.theme)
                 : frame.theme.category[static_cast<std::size_t>(buffer.category)],
         frame);
  if (table_line(in_words(to_string(buffer.category)), row, frame)) {
    if (block != kNone) {
      select_block(of.state, buffer.event);
    } else if (const auto span = find_op(document, buffer.op, of.series.rank(), buffer.since_ns - 1)) {
      go_to_span(of.session, of.state, {of.state.document, *span}, false);
    }
  }
  if (row == 0) name_last("live:0", frame);
  ImGui::TableNextColumn();
  if (block != kNone) {
    cell_text(site_name(of.session, of.derived, document.trace().memory.stack[buffer.event]));
  } else if (buffer.unit.valid()) {
    cell_text(document.chunks().name_of(buffer.unit));
  } else if (const auto span = buffer.op.valid()
                                   ? span_of_op(of.session, of.derived, of.state.document, buffer.op, of.series.rank())
                                   : std::nullopt) {
    cell_text(document.name_of(*span));
  } else {
    ImGui::TextDisabled("buffer %d", buffer.buffer.value);
  }
}

}  // namespace

void draw_live(const Session& session, ViewState& state, Derived& derived, const Frame& frame) {
  const MemorySeries* first = session.empty() ? nullptr : shown_memory(session.documents[0], state);
  const MemorySeries* series =
      first == nullptr || state.document == 0 ? first : shown_memory(session.documents[state.document], state, first);
  if (series == nullptr) {
    hint("There are no memory events, so nothing is known to be live.", frame);
    return;
  }
  const Document& document = session.documents[state.document];
  std::int64_t time = marker_time(session, state);
  if (state.document != 0) time = alignment_of(session, state.align, state.document).to_other(time);
  const bool at_peak = time == series->peak_time_ns();
  const std::size_t moment = at_peak ? series->peak_moment() : series->moment_at(time);
  const std::vector<LiveBuffer>& live =
      derived.live.get({series, moment}, [&] { return series->live_at(document.trace().memory, moment); });
  const std::int64_t total = series->bytes_at(moment);
  heading(size_text(total) + (at_peak ? " at the peak" : " at the marker"), frame);
  std::string where = "rank " + std::to_string(series->rank().value) + ", " + to_string(series->memory()) + ", at " +
                      exact_time_text(series->time_of(moment) - document.range().begin_ns);
  if (session.documents.size() > 1) where = short_name(session, state.document) + ", " + where;
  hint(where, frame);
  if (button("Peak", frame)) go_to_peak(session, state);
  ImGui::SameLine();
  if (button("Copy as CSV", frame)) {
    ImGui::SetClipboardText(to_csv(document, live).c_str());
    state.notice = "the table is in the clipboard as CSV";
  }
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  hint(show_count(static_cast<std::int64_t>(live.size())) + " buffers", frame);
  if (live.empty()) {
    hint("Nothing is live here. Click into the memory pane to look elsewhere.", frame);
    return;
  }
  Of of{session, state, derived, frame, *series};
  if (state.document == 0 && document.of_allocator()) of.blocks.emplace(block_view(session, state, derived, *series));
  if (!ImGui::BeginTable("live", 4, ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthFixed, frame.px(118));
  ImGui::TableSetupColumn("of", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("bytes", ImGuiTableColumnFlags_WidthFixed, frame.px(72));
  ImGui::TableSetupColumn("share", ImGuiTableColumnFlags_WidthFixed, frame.px(52));
  table_heading({"what", "of", "bytes", "share"}, 2, frame);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(live.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const LiveBuffer& buffer = live[static_cast<std::size_t>(i)];
      draw_names(of, buffer, i);
      ImGui::TableNextColumn();
      right_text(size_text(buffer.bytes));
      ImGui::TableNextColumn();
      right_text(total == 0 ? "" : show_percent(static_cast<double>(buffer.bytes) / static_cast<double>(total)), true);
    }
  }
  ImGui::EndTable();
}

}  // namespace shard::view
