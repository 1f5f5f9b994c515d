// Answers, each computed once.
#include "viewer/ui/allocator.h"

#include <imgui.h>

#include <cstdlib>

#include "traces/sites.h"
#include "viewer/index/ticks.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

/// Frames of a tooltip.
constexpr int kInnermost = 8;
/// Frames that are looked at for these: a damaged file may have stacks without measure.
constexpr int kFarthest = 1000;
/// Segments kept by little, that words name.
constexpr std::size_t kKeptInWords = 3;

const std::vector<FrameId>& sites_of(const Session& session, Derived& derived) {
  if (!derived.sites) derived.sites = sites(session.documents[0].trace());
  return *derived.sites;
}

std::string exact(std::int64_t bytes) {
  return std::abs(bytes) < 1024 ? size_text(bytes) : size_text(bytes) + " (" + show_count(bytes) + " B)";
}

}  // namespace

MemoryBy memory_by(const Session& session, const ViewState& state) {
  return session.documents[0].trace().stacks.empty() ? MemoryBy::category : state.memory_by;
}

BlockView block_view(const Session& session, const ViewState& state, Derived& derived, const MemorySeries& series) {
  const Trace& trace = session.documents[0].trace();
  const MemoryBy by = memory_by(session, state);
  auto blocks = derived.blocks.find(&series);
  if (blocks == derived.blocks.end()) blocks = derived.blocks.emplace(&series, BlockList(trace.memory, series)).first;
  auto classes = derived.classes.find({&series, by});
  if (classes == derived.classes.end())
    classes = derived.classes
                  .emplace(std::pair(&series, by),
                           MemoryClasses(trace, series, blocks->second, sites_of(session, derived), by))
                  .first;
  return {series, blocks->second, classes->second, by};
}

Color color_of(const BlockView& view, std::size_t memory_class, const Theme& theme) {
  const std::size_t color = view.classes.all()[memory_class].color;
  return view.by == MemoryBy::category ? theme.category[color] : theme.site[color];
}

FrameId site_of(const Session& session, Derived& derived, StackId stack) {
  return stack.valid() ? sites_of(session, derived)[static_cast<std::size_t>(stack.value)] : FrameId{};
}

std::string site_name(const Session& session, Derived& derived, StackId stack) {
  std::string name = site_text(session.documents[0].trace(), site_of(session, derived, stack));
  return name.empty() ? "no stack" : name;
}

std::string frame_name(const Trace& trace, FrameId frame) {
  if (!frame.valid()) return "?";
  std::string name = site_text(trace, frame);
  if (name.empty()) name = trace.name_of(trace.frame_of(frame).function);
  return name.empty() ? "?" : name;
}

LookedAt looked_at(const Session& session, const ViewState& state, const MemorySeries& series, bool hover) {
  const bool mouse = hover && state.hover_ns.has_value();
  const std::int64_t time = mouse ? *state.hover_ns : marker_time(session, state);
  // Several moments may share the peak's time, and the peak is one certain of them.
  const bool at_peak = !mouse && time == series.peak_time_ns();
  return {at_peak ? series.peak_moment() : series.moment_at(time), time,
          mouse     ? "at the mouse"
          : at_peak ? "at the peak"
                    : "at the marker"};
}

const SegmentsShown& segments_shown(const Session& session, const ViewState& state, Derived& derived) {
  const Document& document = session.documents[0];
  const MemorySeries* series = shown_memory(document, state);
  std::optional<std::int64_t> time;
  if (series != nullptr && marker_time(session, state) != series->peak_time_ns()) time = marker_time(session, state);
  return derived.segments.get({series, time}, [&] {
    SegmentsShown shown;
    if (series == nullptr || document.snapshot() == nullptr || series->memory() != Memory::device) return shown;
    shown.map = segments_at(*document.snapshot(), series->rank().value, time);
    if (!shown.map) return shown;
    shown.fragmentation = fragmentation_of(*shown.map);
    shown.words = in_words(document.trace(), *shown.map, shown.fragmentation, kKeptInWords);
    return shown;
  });
}

void select_block(ViewState& state, std::uint32_t event) {
  state.block = BlockRef{event};
  state.selected.reset();
  state.chunk.reset();
  state.tab = Pane::selection;
}

std::vector<std::pair<std::string, std::string>> block_facts(const Session& session, const BlockView& view,
                                                             std::uint32_t number) {
  const Document& document = session.documents[0];
  const Trace& trace = document.trace();
  const Block& block = view.blocks.all()[number];
  const MemoryEvent event = trace.memory[block.acquired];
  std::vector<std::pair<std::string, std::string>> facts;
  facts.emplace_back("takes", exact(event.delta_bytes));
  if (event.requested_bytes > 0) {
    facts.emplace_back("asked for", exact(event.requested_bytes));
    if (event.delta_bytes != event.requested_bytes)
      facts.emplace_back("not asked for", exact(event.delta_bytes - event.requested_bytes));
  }
  facts.emplace_back("category", in_words(to_string(event.category)));
  const std::int64_t zero = document.range().begin_ns;
  const bool at_start = document.snapshot() != nullptr && block.begin <= document.snapshot()->at_start.blocks.size() &&
                        event.time_ns == view.series.time_of(0);
  facts.emplace_back("from", at_start ? "before the recording" : exact_time_text(event.time_ns - zero));
  if (block.released == kNone) {
    facts.emplace_back("to", "after the recording");
  } else {
    const std::int64_t end = trace.memory.time_ns[block.released];
    facts.emplace_back("to", exact_time_text(end - zero));
    if (!at_start) facts.emplace_back("lives for", duration_text(end - event.time_ns));
  }
  return facts;
}

void block_tooltip(const Session& session, Derived& derived, const BlockView& view, std::uint32_t number,
                   const Frame& frame) {
  const Trace& trace = session.documents[0].trace();
  const StackId stack = trace.memory.stack[view.blocks.all()[number].acquired];
  swatch(color_of(view, view.classes.of(number), frame.theme), frame);
  heading(site_name(session, derived, stack), frame);
  for (const auto& [name, value] : block_facts(session, view, number)) {
    ImGui::TextDisabled("%s", name.c_str());
    ImGui::SameLine(frame.px(110));
    ImGui::TextUnformatted(value.c_str());
  }
  const auto is_python = [&](FrameId id) {
    return id.valid() && trace.name_of(trace.frame_of(id).file).ends_with(".py");
  };
  bool python = false;
  int looked = 0;
  for (StackId at = stack; at.valid() && looked < kFarthest; at = trace.stack_of(at).caller, ++looked)
    python = python || is_python(trace.stack_of(at).frame);
  int shown = 0;
  looked = 0;
  for (StackId at = stack; at.valid() && shown < kInnermost && looked < kFarthest;
       at = trace.stack_of(at).caller, ++looked) {
    const FrameId id = trace.stack_of(at).frame;
    if (python && !is_python(id)) continue;
    if (shown++ == 0) ImGui::Spacing();
    const std::string name = ends_of(frame_name(trace, id), [](std::string_view text) { return text.size() <= 70; });
    ImGui::TextDisabled("%s", name.c_str());
  }
  if (shown > 0) ImGui::TextDisabled("... a click shows the whole stack");
}

}  // namespace shard::view
