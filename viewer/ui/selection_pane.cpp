// Details of the selected span or chunk; else of the trace.
#include <imgui.h>

#include <algorithm>

#include "traces/sites.h"
#include "viewer/index/ticks.h"
#include "viewer/ui/actions.h"
#include "viewer/ui/allocator.h"
#include "viewer/ui/chunk_pane.h"
#include "viewer/ui/notes.h"
#include "viewer/ui/side_panes.h"
#include "viewer/ui/span_text.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

/// More links or stretches than this are counted, not listed.
constexpr std::size_t kListed = 40;
/// Of a stack; a damaged file may have stacks without measure.
constexpr std::size_t kFrames = 500;

const char* word_of(FlowKind kind) {
  switch (kind) {
    case FlowKind::dependency: return "";
    case FlowKind::launch: return "launch";
    case FlowKind::communication: return "communication";
  }
  return "";
}

void draw_links(const char* title, const std::vector<FlowLink>& links, bool sources, const Session& session,
                ViewState& state, const Frame& frame, std::size_t document) {
  if (links.empty()) return;
  ImGui::Spacing();
  heading(title, frame);
  for (std::size_t i = 0; i < std::min(links.size(), kListed); ++i) {
    const std::uint32_t span = sources ? links[i].from : links[i].to;
    const Document& shown = session.documents[document];
    swatch(frame.theme.span_class[static_cast<std::size_t>(shown.class_of(span))], frame);
    std::string label = shown.name_of(span) + "   " + duration_text(shown.time_of(span).length_ns());
    if (*word_of(links[i].kind) != '\0') label += std::string("   ") + word_of(links[i].kind);
    label += "##" + std::string(title) + std::to_string(i);
    if (ImGui::Selectable(label.c_str())) go_to_span(session, state, {document, span}, false);
    name_last((sources ? "source:" : "target:") + std::to_string(span), frame);
  }
  if (links.size() > kListed) hint(std::to_string(links.size() - kListed) + " more", frame);
}

void draw_span(const Session& session, ViewState& state, Derived& derived, const Frame& frame) {
  const SpanRef ref = *state.selected;
  const Document& document = session.documents[ref.document];
  swatch(frame.theme.span_class[static_cast<std::size_t>(document.class_of(ref.span))], frame);
  heading(document.name_of(ref.span), frame);
  if (session.documents.size() > 1) fact("trace", short_name(session, ref.document), frame);
  for (const auto& [name, value] : span_facts(document, ref.span)) fact(name, value, frame);
  ImGui::Spacing();
  if (button("Zoom to it", frame)) go_to_span(session, state, ref, true);
  ImGui::SameLine();
  if (button("Select its time", frame)) state.range = axis_time(session, state, ref);
  for (std::size_t d = 0; d < session.documents.size(); ++d) {
    if (d == ref.document) continue;
    const auto twin = counterpart(document, ref.span, session.documents[d]);
    if (!twin) continue;
    ImGui::Spacing();
    const std::int64_t own = document.time_of(ref.span).length_ns();
    const std::int64_t theirs = session.documents[d].time_of(*twin).length_ns();
    heading("The same op, " + short_name(session, d), frame);
    fact("duration", duration_text(theirs), frame);
    fact("difference", with_sign(duration_text(theirs - own), static_cast<double>(theirs - own)), frame);
    if (own > 0) fact("ratio", show_number(static_cast<double>(theirs) / static_cast<double>(own)), frame);
    const std::string label = "Go to it##" + std::to_string(d);
    if (ImGui::Button(label.c_str())) {
      state.document = d;
      go_to_span(session, state, {d, *twin}, false);
    }
    name_last("button:Go to it", frame);
  }
  const FlowIndex& flows = flows_of(session, derived, ref.document);
  draw_links("Waits for", flows.to(ref.span), true, session, state, frame, ref.document);
  draw_links("Leads to", flows.from(ref.span), false, session, state, frame, ref.document);
}

void draw_chunk(const Session& session, ViewState& state, const Frame& frame) {
  const ChunkRef ref = *state.chunk;
  const std::size_t document = chunk_document(session, state).value_or(0);
  const ChunkMap& map = session.documents[document].chunks();
  const std::vector<ChunkStretch> history = map.history(ref.rank, ref.unit);
  heading(map.name_of(ref.unit) + ", rank " + std::to_string(ref.rank.value), frame);
  for (const auto& [name, value] : unit_facts(session.documents[document], ref.unit)) fact(name, value, frame);
  ByChunkClass total{};
  for (const ChunkStretch& stretch : history)
    total[static_cast<std::size_t>(chunk_class(stretch.state, stretch.memory))] += stretch.time.length_ns();
  for (std::size_t c = 0; c < total.size(); ++c) {
    if (total[c] != 0) fact(in_words(to_string(static_cast<ChunkClass>(c))), duration_text(total[c]), frame);
  }
  ImGui::Spacing();
  heading("History", frame);
  if (!ImGui::BeginTable("history", 3, ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("from", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("state", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("for", ImGuiTableColumnFlags_WidthStretch, 0.7F);
  table_heading({"from", "state", "for"}, 2, frame);
  const Alignment& alignment = alignment_of(session, state.align, document);
  const std::int64_t zero = session.documents[document].range().begin_ns;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(history.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const ChunkStretch& stretch = history[static_cast<std::size_t>(i)];
      const ChunkClass kind = chunk_class(stretch.state, stretch.memory);
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const std::string when = duration_text(stretch.time.begin_ns - zero) + "##" + std::to_string(i);
      if (ImGui::Selectable(when.c_str(), false, ImGuiSelectableFlags_SpanAllColumns)) {
        const std::int64_t time = document == 0 ? stretch.time.begin_ns : alignment.to_first(stretch.time.begin_ns);
        state.marker_ns = time;
        if (!visible(state.camera).contains(time)) state.camera = center(state.camera, time);
      }
      ImGui::TableNextColumn();
      swatch(color_of(kind, frame.theme), frame);
      ImGui::TextUnformatted(in_words(to_string(kind)).c_str());
      ImGui::TableNextColumn();
      right_text(duration_text(stretch.time.length_ns()));
    }
  }
  ImGui::EndTable();
}

void draw_trace(const Session& session, const Frame& frame, std::size_t index) {
  const Document& document = session.documents[index];
  const Trace& trace = document.trace();
  heading(document.label(), frame);
  fact("kind", to_string(trace.header.kind), frame);
  fact("ranks", std::to_string(trace.header.world_size), frame);
  fact("length", duration_text(document.range().length_ns()), frame);
  fact("spans", show_count(static_cast<std::int64_t>(trace.spans.size())), frame);
  fact("memory events", show_count(static_cast<std::int64_t>(trace.memory.size())), frame);
  if (!document.steps().empty()) {
    fact("steps", std::to_string(document.steps().size()), frame);
    fact("median step", duration_text(static_cast<std::int64_t>(median_step_seconds(document.steps()) * 1e9)), frame);
  }
  if (!trace.header.plan_hash.empty()) fact("plan", trace.header.plan_hash.substr(0, 16), frame);
  if (trace.dropped_count > 0) fact("lost events", show_count(trace.dropped_count), frame);
  for (const auto& [key, value] : trace.header.metadata) fact(in_words(key), value, frame);
  for (const auto& [name, value] : plan_facts(document)) fact(name, value, frame);
  ImGui::Spacing();
}

/// One line of a stack; the site of the block stands out, what is neither of a library nor of C++ is in plain ink.
void draw_frame(const Trace& trace, const LibraryFiles& files, FrameId id, bool is_site, const Frame& frame) {
  const StackFrame& line = trace.frame_of(id);
  const Color ink = is_site ? frame.theme.accent : is_library(trace, files, line) ? frame.theme.dim : frame.theme.text;
  ImGui::PushStyleColor(ImGuiCol_Text, ink);
  cell_text(frame_name(trace, id));
  ImGui::PopStyleColor();
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("%s\n%s:%d", std::string(trace.name_of(line.function)).c_str(),
                      std::string(trace.name_of(line.file)).c_str(), line.has_line() ? line.line : 0);
  if (is_site) name_last("frame:site", frame);
}

/// The stack of a block, innermost first: Python alone, then everything where there is more.
void draw_stack(const Session& session, Derived& derived, StackId stack, const Frame& frame) {
  const Trace& trace = session.documents[0].trace();
  const FrameId site = site_of(session, derived, stack);
  if (!derived.library_files) derived.library_files.emplace(trace);
  std::vector<FrameId> all, python;
  for (StackId at = stack; at.valid() && all.size() < kFrames; at = trace.stack_of(at).caller) {
    const FrameId id = trace.stack_of(at).frame;
    if (!id.valid()) continue;
    all.push_back(id);
    if (trace.name_of(trace.frame_of(id).file).ends_with(".py")) python.push_back(id);
  }
  if (all.empty()) hint("The recording holds no stack of it.", frame);
  for (const std::vector<FrameId>* frames : {&python, &all}) {
    if (frames->empty() || (frames == &all && python.size() == all.size())) continue;
    ImGui::Spacing();
    heading(frames == &python ? "Stack, innermost first" : "With what is not Python", frame);
    bool found = false;
    for (const FrameId id : *frames) {
      draw_frame(trace, *derived.library_files, id, id == site && !found, frame);
      found = found || id == site;
    }
  }
  if (all.size() == kFrames) hint("more frames are not shown", frame);
}

void draw_block(const Session& session, ViewState& state, Derived& derived, const Frame& frame) {
  const Trace& trace = session.documents[0].trace();
  const MemoryEvent event = trace.memory[state.block->event];
  const MemorySeries* series = session.documents[0].memory_of(event.rank, event.memory);
  if (series == nullptr) return;
  const BlockView view = block_view(session, state, derived, *series);
  const std::uint32_t block = view.blocks.acquired_by(state.block->event);
  if (block == kNone) return;
  swatch(color_of(view, view.classes.of(block), frame.theme), frame);
  heading(site_name(session, derived, event.stack), frame);
  for (const auto& [name, value] : block_facts(session, view, block)) fact(name, value, frame);
  draw_stack(session, derived, event.stack, frame);
}

}  // namespace

void draw_selection(const Session& session, ViewState& state, Derived& derived, const Frame& frame) {
  if (session.empty()) {
    hint("Nothing is open.", frame);
    return;
  }
  if (state.selected) {
    draw_span(session, state, derived, frame);
    return;
  }
  if (state.chunk && chunk_document(session, state)) {
    draw_chunk(session, state, frame);
    return;
  }
  if (state.block && state.block->event < session.documents[0].trace().memory.size() &&
      session.documents[0].of_allocator()) {
    draw_block(session, state, derived, frame);
    return;
  }
  draw_note_list(state, frame);
  hint("Click a span, a chunk or an allocator's block to see what it is. Until then, what is open:", frame);
  ImGui::Spacing();
  for (std::size_t i = 0; i < session.documents.size(); ++i) draw_trace(session, frame, i);
}

}  // namespace shard::view
