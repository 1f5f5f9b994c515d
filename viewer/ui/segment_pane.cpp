// Bars, their colours, and what is to be said.
#include "viewer/ui/segment_pane.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "viewer/index/segment_rows.h"
#include "viewer/index/ticks.h"
#include "viewer/ui/allocator.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/pane_parts.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

/// Logical pixels: a row with the room below it, and how much of it the bar is.
constexpr float kRowPitch = 20, kBarHeight = 15, kHighestRow = 44;

struct SegmentScene {
  const Session& session;
  ViewState& state;
  Derived& derived;
  const Frame& frame;
  const Canvas& canvas;
  const SegmentsShown& shown;
  const BlockView view;
};

/// The memory event's block of one that the snapshot told of: both count from the start. kNone where they do not agree.
std::uint32_t in_trace(const SegmentScene& scene, const PlacedBlock& placed) {
  const std::vector<Block>& all = scene.view.blocks.all();
  const auto number = static_cast<std::size_t>(placed.number);
  const bool same = number < all.size() && all[number].bytes == placed.bytes;
  return same ? static_cast<std::uint32_t>(number) : kNone;
}

Color color_of_block(const SegmentScene& scene, const PlacedBlock& placed) {
  const std::uint32_t block = in_trace(scene, placed);
  return block == kNone ? scene.frame.theme.dim : color_of(scene.view, scene.view.classes.of(block), scene.frame.theme);
}

struct Bar {
  const SegmentBar& of;
  Rect rect;
  double bytes_per_pixel;
  [[nodiscard]] float x(std::int64_t bytes) const {
    const double share = static_cast<double>(bytes - of.begin_bytes) /
                         static_cast<double>(std::max<std::int64_t>(1, of.end_bytes - of.begin_bytes));
    return rect.x0 + static_cast<float>(std::clamp(share, 0.0, 1.0)) * rect.width();
  }
};

/// Neighbours of one colour without a visible gap are one rectangle: a segment may have a hundred thousand blocks.
void draw_bar(const SegmentScene& scene, const Bar& bar, bool kept) {
  const Theme& theme = scene.frame.theme;
  const PlacedSegment& segment = scene.shown.map->segments[bar.of.segment];
  scene.canvas.fill(bar.rect, mix(theme.border, theme.pane, 0.35));
  Rect run{0, bar.rect.y0, 0, bar.rect.y1};
  Color color = 0;
  bool shade = false;
  const auto flush = [&] {
    if (run.x1 > run.x0) scene.canvas.fill({run.x0, run.y0, std::max(run.x1, run.x0 + 1), run.y1}, color);
  };
  for (const PlacedBlock& block : segment.blocks) {
    const auto begin = static_cast<std::int64_t>(block.address - segment.address);
    if (begin >= bar.of.end_bytes) break;
    if (begin + block.bytes <= bar.of.begin_bytes) continue;
    const float x0 = bar.x(begin), x1 = bar.x(begin + block.bytes);
    Color next = color_of_block(scene, block);
    if (x1 - x0 >= 3) next = mix(next, theme.pane, (shade = !shade) ? 1.0 : 0.82);
    if (next == color && x0 - run.x1 < 0.75F) {
      run.x1 = x1;
      continue;
    }
    flush();
    run.x0 = x0;
    run.x1 = x1;
    color = next;
  }
  flush();
  scene.canvas.outline({bar.rect.x0 - 1, bar.rect.y0 - 1, bar.rect.x1 + 1, bar.rect.y1 + 1},
                       kept ? theme.warning : theme.border);
}

void tooltip(const SegmentScene& scene, const PlacedSegment& segment, std::uint64_t address) {
  ImGui::BeginTooltip();
  const std::size_t place = block_of(segment, address);
  if (place < segment.blocks.size()) {
    const PlacedBlock& placed = segment.blocks[place];
    const std::uint32_t block = in_trace(scene, placed);
    if (block != kNone) {
      block_tooltip(scene.session, scene.derived, scene.view, block, scene.frame);
    } else {
      heading(size_text(placed.bytes), scene.frame);
    }
  } else {
    std::uint64_t begin = segment.address, end = segment.address + static_cast<std::uint64_t>(segment.bytes);
    for (const PlacedBlock& block : segment.blocks) {
      const std::uint64_t after = block.address + static_cast<std::uint64_t>(block.bytes);
      if (after <= address) begin = std::max(begin, after);
      if (block.address > address) end = std::min(end, block.address);
    }
    heading(segment.blocks.empty() ? "a segment wholly free" : "a gap", scene.frame);
    ImGui::TextUnformatted(size_text(static_cast<std::int64_t>(end - begin)).c_str());
  }
  ImGui::Spacing();
  ImGui::TextDisabled("segment of %s, %s of it allocated in %s blocks%s", size_text(segment.bytes).c_str(),
                      size_text(segment.allocated_bytes).c_str(),
                      show_count(static_cast<std::int64_t>(segment.blocks.size())).c_str(),
                      segment.expandable ? ", expandable" : "");
  ImGui::EndTooltip();
}

void take_mouse(const SegmentScene& scene, const std::vector<Bar>& bars, const Rect& plot) {
  ImGui::SetCursorScreenPos(ImVec2(plot.x0, plot.y0));
  ImGui::InvisibleButton("segments", ImVec2(std::max(1.0F, plot.width()), std::max(1.0F, plot.height())));
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  for (const Bar& bar : bars) {
    if (!bar.rect.contains(mouse.x, mouse.y)) continue;
    const PlacedSegment& segment = scene.shown.map->segments[bar.of.segment];
    const double share = static_cast<double>(mouse.x - bar.rect.x0) / static_cast<double>(bar.rect.width());
    const auto inside = bar.of.begin_bytes +
                        static_cast<std::int64_t>(share * static_cast<double>(bar.of.end_bytes - bar.of.begin_bytes));
    const std::uint64_t address = segment.address + static_cast<std::uint64_t>(inside);
    tooltip(scene, segment, address);
    const std::size_t place = block_of(segment, address);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && place < segment.blocks.size()) {
      const std::uint32_t block = in_trace(scene, segment.blocks[place]);
      if (block != kNone) select_block(scene.state, scene.view.blocks.all()[block].acquired);
    }
    return;
  }
}

void draw_bars(const SegmentScene& scene, const Rect& plot) {
  const Frame& frame = scene.frame;
  const float pad = frame.px(kPad);
  const Rect room{plot.x0 + pad, plot.y0, plot.x1 - pad, plot.y1};
  const auto most = static_cast<std::int32_t>(room.height() / frame.px(kRowPitch));
  const SegmentRows rows = lay_out_segments(*scene.shown.map, room.width(), most, frame.px(4));
  if (rows.row_count == 0) return;
  const float pitch = std::min(room.height() / static_cast<float>(rows.row_count), frame.px(kHighestRow));
  const float height = std::round(pitch - frame.px(kRowPitch - kBarHeight));
  std::vector<bool> kept(scene.shown.map->segments.size());
  for (const std::size_t segment : scene.shown.fragmentation.kept) kept[segment] = true;
  std::vector<Bar> bars;
  bars.reserve(rows.bars.size());
  for (const SegmentBar& each : rows.bars) {
    const float y = std::round(room.y0 + static_cast<float>(each.row) * pitch);
    bars.push_back({each,
                    {std::round(room.x0 + static_cast<float>(each.x0)), y,
                     std::round(room.x0 + static_cast<float>(each.x1)), y + height},
                    rows.bytes_per_pixel});
    draw_bar(scene, bars.back(), kept[each.segment]);
    if (frame.items != nullptr) frame.name("segment:" + std::to_string(each.segment), bars.back().rect);
  }
  if (scene.state.block) {
    for (const Bar& bar : bars) {
      const PlacedSegment& segment = scene.shown.map->segments[bar.of.segment];
      for (const PlacedBlock& placed : segment.blocks) {
        const std::uint32_t block = in_trace(scene, placed);
        if (block == kNone || scene.view.blocks.all()[block].acquired != scene.state.block->event) continue;
        const auto begin = static_cast<std::int64_t>(placed.address - segment.address);
        if (begin + placed.bytes <= bar.of.begin_bytes || begin >= bar.of.end_bytes) continue;
        scene.canvas.outline({bar.x(begin) - 1, bar.rect.y0 - 2, bar.x(begin + placed.bytes) + 1, bar.rect.y1 + 2},
                             frame.theme.text, frame.px(2));
      }
    }
  }
  take_mouse(scene, bars, plot);
}

/// Figures in the gutter.
void draw_figures(const SegmentScene& scene, const Rect& gutter) {
  const Frame& frame = scene.frame;
  const Theme& theme = frame.theme;
  const Fragmentation& of = scene.shown.fragmentation;
  const float line = scene.canvas.line_height(frame.fonts.small) + frame.px(4), pad = frame.px(kPad);
  float y = gutter.y0 + frame.px(5);
  const auto row = [&](const char* name, const std::string& value, Color ink) {
    if (y + line > gutter.y1) return;
    scene.canvas.text(gutter.x1 - pad, y, value, ink, Anchor::right, frame.fonts.small);
    const float width = scene.canvas.width_of(value, frame.fonts.small) + frame.px(6);
    scene.canvas.text_in({gutter.x0 + pad, y - frame.px(2), gutter.x1 - pad - width, y + line - frame.px(2)}, name,
                         theme.dim, frame.fonts.small);
    y += line;
  };
  row("reserved", size_text(of.reserved_bytes), theme.text);
  row("allocated", size_text(of.allocated_bytes), theme.text);
  row("not allocated", size_text(of.reserved_bytes - of.allocated_bytes), theme.text);
  row("wholly free segments", size_text(of.free_segment_bytes), theme.text);
  row("gaps", size_text(of.gap_bytes), theme.text);
  row("the largest gap", of.largest_gap ? size_text(of.largest_gap->bytes) : "none", theme.text);
  row("segments", show_count(of.segments), theme.text);
  if (!of.kept.empty()) row("kept by few blocks", show_count(static_cast<std::int64_t>(of.kept.size())), theme.warning);
}

/// The words, as many lines as they take; returns where they end.
float draw_words(const SegmentScene& scene, const Rect& plot) {
  const Frame& frame = scene.frame;
  const float pad = frame.px(kPad), line = scene.canvas.line_height(frame.fonts.small) + frame.px(3);
  float y = plot.y0 + frame.px(5);
  std::vector<std::string> lines;
  for (const std::string& words : scene.shown.words) {
    for (std::string& part : wrapped(scene.canvas, words, plot.width() - 2 * pad, frame.fonts.small))
      lines.push_back(std::move(part));
  }
  // Bars come first where there is little room.
  const auto most = static_cast<std::size_t>(std::max(1.0F, plot.height() * 0.4F / line));
  for (std::size_t i = 0; i < std::min(lines.size(), most); ++i, y += line) {
    const bool cut = i + 1 == most && lines.size() > most;
    scene.canvas.text(plot.x0 + pad, y, cut ? lines[i] + " \u2026" : lines[i], frame.theme.text, Anchor::left,
                      frame.fonts.small);
  }
  return y + frame.px(6);
}

}  // namespace

bool has_segments(const Session& session) {
  if (session.empty() || session.documents[0].snapshot() == nullptr) return false;
  const Snapshot& snapshot = *session.documents[0].snapshot();
  return !snapshot.segments.empty() || !snapshot.at_start.segments.empty();
}

void draw_segments(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  PaneArea pane = cut_pane(area, frame);
  const MemorySeries* series = session.empty() ? nullptr : shown_memory(session.documents[0], state);
  const SegmentsShown none;
  const SegmentsShown& shown = series == nullptr ? none : segments_shown(session, state, derived);
  if (!shown.map) {
    draw_pane_ground(canvas, pane, "Segments", "", frame);
    draw_empty(canvas, pane.plot, "The file does not tell of an allocator's segments.",
               "PyTorch's memory snapshots do (torch.cuda.memory._dump_snapshot).", frame);
    return;
  }
  const LookedAt look = looked_at(session, state, *series, false);
  draw_pane_ground(canvas, pane, std::string("Segments ") + look.when,
                   show_count(static_cast<std::int64_t>(shown.map->segments.size())) +
                       (shown.map->segments.size() == 1 ? " segment" : " segments, the largest first"),
                   frame);
  const SegmentScene scene{session, state, derived, frame, canvas, shown, block_view(session, state, derived, *series)};
  frame.name("plot:segments", pane.plot);
  const Clip clip(canvas, {area.x0, pane.plot.y0, area.x1, area.y1});
  draw_figures(scene, pane.gutter);
  const float top = draw_words(scene, pane.plot);
  draw_bars(scene, {pane.plot.x0, top, pane.plot.x1, pane.plot.y1 - frame.px(2)});
}

}  // namespace shard::view
