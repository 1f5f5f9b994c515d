// The memory pane: stack, legend, capacity, peak, and the difference of two documents.
#include "viewer/ui/memory_pane.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <ranges>

#include "viewer/index/ticks.h"
#include "viewer/ui/actions.h"
#include "viewer/ui/block_stack.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/difference_strip.h"
#include "viewer/ui/memory_stack.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/pane_parts.h"
#include "viewer/ui/plot.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

/// Share of the plot that the difference takes, with two documents or more.
constexpr float kDifferenceShare = 0.27F;
/// A capacity beyond this many times the peak would flatten the picture; it is named instead of drawn.
constexpr double kCapacityInView = 2.5;

struct Scene {
  const Session& session;
  ViewState& state;
  Derived& derived;
  const Frame& frame;
  const Canvas& canvas;
  const MemorySeries* first;
  std::optional<BlockView> blocks{};  ///< of an allocator's recording
};

const MemorySeries* series_of(const Scene& scene, std::size_t document) {
  return document == 0 ? scene.first : shown_memory(scene.session.documents[document], scene.state, scene.first);
}

std::string title_of(const MemorySeries& series) {
  std::string title = "Memory";
  if (series.rank().valid()) title += " of rank " + std::to_string(series.rank().value);
  return title + ", " + to_string(series.memory());
}

/// Which line is which trace, where there are several.
void draw_traces(const Scene& scene, const Rect& gutter) {
  const Frame& frame = scene.frame;
  const float line = scene.canvas.line_height(frame.fonts.small) + frame.px(4);
  const auto count = static_cast<float>(scene.session.documents.size() - 1);
  float y = gutter.y1 - count * line - frame.px(4);
  for (std::size_t d = 1; d < scene.session.documents.size(); ++d, y += line) {
    const float x = gutter.x0 + frame.px(kPad);
    const bool none = series_of(scene, d) == nullptr;
    if (!none)
      scene.canvas.fill({x, y + line / 2 - frame.px(1), x + frame.px(14), y + line / 2 + frame.px(1)},
                        frame.theme.series[d % frame.theme.series.size()]);
    scene.canvas.text_in({x + frame.px(20), y, gutter.x1 - frame.px(kPad), y + line},
                         short_name(scene.session, d) + (none ? ": no events" : ", total"),
                         none ? frame.theme.dim : frame.theme.text, frame.fonts.small);
  }
}

/// Sizes at the grid lines, over the data: a pale ground keeps them readable.
void draw_sizes(const Scene& scene, const ByteAxis& axis) {
  const Theme& theme = scene.frame.theme;
  for (const Tick& tick :
       byte_ticks(static_cast<std::int64_t>(axis.low_bytes), static_cast<std::int64_t>(axis.top_bytes),
                  axis.plot.height(), scene.frame.px(30))) {
    if (tick.label.empty()) continue;
    const float y = axis.plot.y1 - static_cast<float>(tick.position);
    const float height = scene.canvas.line_height(scene.frame.fonts.small) + scene.frame.px(4);
    if (y - height < axis.plot.y0) continue;
    // The line of the capacity would cross the text.
    const float limit = axis.y(static_cast<double>(scene.first->capacity_bytes()));
    if (limit > y - height && limit < y) continue;
    // The mark of the peak would lie on it.
    const float peak_x = x_in(axis.plot, scene.state, scene.first->peak_time_ns());
    const float peak_y = axis.y(static_cast<double>(scene.first->peak_bytes()));
    const float wide = scene.canvas.width_of(tick.label, scene.frame.fonts.small) + scene.frame.px(16);
    if (peak_x >= axis.plot.x0 && peak_x < axis.plot.x0 + wide && peak_y > y - 2 * height && peak_y < y + height)
      continue;
    scene.canvas.label(axis.plot.x0 + scene.frame.px(2), y - height, tick.label, theme.text,
                       with_alpha(theme.pane, 170), axis.plot);
  }
}

/// Categories from the top of the stack down, with their bytes at the mouse, else at the marker or the peak.
void draw_legend(const Scene& scene, const Rect& gutter) {
  const Theme& theme = scene.frame.theme;
  const Frame& frame = scene.frame;
  const Document& document = scene.session.documents[0];
  const LookedAt look = looked_at(scene.session, scene.state, *scene.first, true);
  const BytesByCategory stack = scene.first->stack_at(document.trace().memory, look.moment);
  const float line = scene.canvas.line_height(frame.fonts.small) + frame.px(4);
  const float pad = frame.px(kPad);
  const float right = gutter.x1 - pad;
  float y = gutter.y0 + frame.px(6);
  scene.canvas.text_in({gutter.x0 + pad, y, right, y + line}, look.when, theme.dim, frame.fonts.small);
  y += line;
  scene.canvas.text_in({gutter.x0 + pad, y, right, y + line}, size_text(scene.first->bytes_at(look.moment)), theme.text,
                       frame.fonts.bold);
  y += line + frame.px(3);
  for (const Category category : std::views::reverse(scene.first->categories())) {
    if (y + line > gutter.y1) break;
    const auto index = static_cast<std::size_t>(category);
    const float box = frame.px(9);
    const float middle = y + line / 2;
    scene.canvas.fill({gutter.x0 + pad, middle - box / 2, gutter.x0 + pad + box, middle + box / 2},
                      theme.category[index]);
    const bool none = stack[index] == 0;
    const Color ink = none ? theme.dim : theme.text;
    const std::string bytes = none ? "0" : size_text(stack[index]);
    const float width = scene.canvas.width_of(bytes, frame.fonts.small);
    const float top = std::round(y + frame.px(2));
    scene.canvas.text(right, top, bytes, ink, Anchor::right, frame.fonts.small);
    scene.canvas.text_in({gutter.x0 + pad + box + frame.px(5), y, right - width - frame.px(4), y + line},
                         in_words(to_string(category)), ink, frame.fonts.small);
    y += line;
  }
}

void draw_limits(const Scene& scene, const ByteAxis& axis) {
  const Theme& theme = scene.frame.theme;
  const std::int64_t capacity = scene.first->capacity_bytes();
  if (capacity > 0 && static_cast<double>(capacity) <= axis.top_bytes &&
      static_cast<double>(capacity) >= axis.low_bytes) {
    const float y = axis.y(static_cast<double>(capacity));
    scene.canvas.dashed_horizontal(axis.plot.x0, axis.plot.x1, y, theme.bad, scene.frame.px(7));
    scene.canvas.label(axis.plot.x1 - scene.frame.px(4), y + scene.frame.px(2), "capacity " + size_text(capacity),
                       theme.bad, with_alpha(theme.pane, 220), axis.plot, Anchor::right);
  }
}

void draw_peak(const Scene& scene, const ByteAxis& axis) {
  const MemorySeries& series = *scene.first;
  if (series.event_count() == 0) return;
  const Theme& theme = scene.frame.theme;
  const float x = x_in(axis.plot, scene.state, series.peak_time_ns());
  if (x < axis.plot.x0 || x >= axis.plot.x1) return;
  const float y = axis.y(static_cast<double>(series.peak_bytes()));
  if (y < axis.plot.y0 || y > axis.plot.y1) return;
  const float size = scene.frame.px(6);
  scene.canvas.triangle(x, y - scene.frame.px(1), x + size, y - size * 1.6F, x - size, y - size * 1.6F, theme.text);
  const Document& document = scene.session.documents[0];
  std::string text = "peak " + size_text(series.peak_bytes());
  const MemoryEvent event = document.trace().memory[series.event_of(series.peak_moment())];
  if (event.op.valid()) {
    text += ", " + in_words(to_string(event.phase));
    if (const auto span = span_of_op(scene.session, scene.derived, 0, event.op, series.rank()))
      text += ", " + document.name_of(*span);
  }
  if (scene.canvas.width_of(text, scene.frame.fonts.small) > axis.plot.width() * 0.7F)
    text = "peak " + size_text(series.peak_bytes());
  const bool right = x < axis.plot.x0 + axis.plot.width() / 2;
  scene.canvas.label(right ? x + size + scene.frame.px(3) : x - size - scene.frame.px(3),
                     y - size * 1.6F - scene.frame.px(5), text, theme.text, with_alpha(theme.bar, 235), axis.plot,
                     right ? Anchor::left : Anchor::right);
  scene.frame.name("peak", {x - size, y - size * 1.6F, x + size, y});
}

/// The bytes that the plot has to reach: the peaks, and the capacity where that is near. Where it is not, `note` says
/// so.
double highest_shown(const Scene& scene, std::string& note) {
  const std::int64_t capacity = scene.first->capacity_bytes();
  const auto peak = static_cast<double>(std::max<std::int64_t>(scene.first->peak_bytes(), 1));
  double highest = peak;
  // What is reserved beyond the peak is drawn too, where it would not flatten the picture.
  const auto reserved = static_cast<double>(scene.first->arena_peak_bytes());
  if (scene.blocks && reserved <= peak * kCapacityInView) highest = std::max(highest, reserved);
  for (std::size_t d = 1; d < scene.session.documents.size(); ++d) {
    if (const MemorySeries* other = series_of(scene, d))
      highest = std::max(highest, static_cast<double>(other->peak_bytes()));
  }
  if (capacity <= 0) return highest;
  if (static_cast<double>(capacity) <= highest * kCapacityInView)
    return std::max(highest, static_cast<double>(capacity));
  note += "; capacity " + size_text(capacity) + ", " + show_number(std::round(static_cast<double>(capacity) / peak)) +
          " times the peak";
  return highest;
}

/// The first trace by block or category, the others as outlines over it.
void draw_live(const Scene& scene, const ByteAxis& axis) {
  const Theme& theme = scene.frame.theme;
  const std::vector<Document>& documents = scene.session.documents;
  const PixelRange view = pixels(scene.state.camera, static_cast<std::int32_t>(axis.plot.width()));
  if (scene.blocks) {
    const BlockPicture& picture = block_picture(*scene.blocks, scene.state, scene.derived, axis, scene.frame);
    draw_block_stack(scene.canvas, axis, *scene.blocks, picture, scene.state, scene.frame);
    draw_reserved(scene.session, scene.canvas, axis, *scene.blocks, scene.state, scene.derived, scene.frame);
  } else {
    scene.first->columns(documents[0].trace().memory, view, scene.derived.columns);
    draw_memory_stack(scene.canvas, axis, scene.derived.columns, theme);
  }
  for (std::size_t d = 1; d < documents.size(); ++d) {
    const MemorySeries* other = series_of(scene, d);
    if (other == nullptr) continue;
    const Alignment& alignment = alignment_of(scene.session, scene.state.align, d);
    other->columns(documents[d].trace().memory, alignment.to_other(view), scene.derived.columns);
    draw_memory_outline(scene.canvas, axis, scene.derived.columns, theme.pane, scene.frame.px(4));
    draw_memory_outline(scene.canvas, axis, scene.derived.columns, theme.series[d % theme.series.size()],
                        scene.frame.px(2));
  }
}

/// The block under the mouse, or kNone.
std::uint32_t block_under(const Scene& scene, const PlotMouse& mouse, const ByteAxis& axis) {
  if (!scene.blocks || mouse.y < axis.plot.y0 || mouse.y >= axis.plot.y1) return kNone;
  const BlockPicture& picture = block_picture(*scene.blocks, scene.state, scene.derived, axis, scene.frame);
  return block_at(picture, scene.blocks->blocks, static_cast<std::int32_t>(mouse.x - axis.plot.x0),
                  static_cast<std::int64_t>(axis.bytes_at(mouse.y)));
}

/// Sites or categories: what the colours stand for, to be chosen where the trace knows stacks. Returns where it ends.
float choose_colors(const Scene& scene, const Rect& title, float x) {
  if (!scene.blocks || scene.session.documents[0].trace().stacks.empty()) return x;
  const Frame& frame = scene.frame;
  ImGui::PushFont(frame.fonts.small);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(frame.px(6), frame.px(1)));
  ImGui::SetCursorScreenPos(ImVec2(x, std::round(title.y0 + (title.height() - ImGui::GetFrameHeight()) / 2)));
  if (toggle("by site", scene.blocks->by == MemoryBy::site, frame)) scene.state.memory_by = MemoryBy::site;
  ImGui::SameLine(0, frame.px(3));
  if (toggle("by stack", scene.blocks->by == MemoryBy::stack, frame)) scene.state.memory_by = MemoryBy::stack;
  ImGui::SameLine(0, frame.px(3));
  if (toggle("by category", scene.blocks->by == MemoryBy::category, frame)) scene.state.memory_by = MemoryBy::category;
  const float end = ImGui::GetItemRectMax().x;
  ImGui::PopStyleVar();
  ImGui::PopFont();
  return end;
}

/// All of it, or the part that the user looks at.
ByteAxis byte_axis(const Scene& scene, const Rect& plot, double top_bytes) {
  if (!scene.blocks || !scene.state.bytes) return {plot, top_bytes, 0};
  return {plot, scene.state.bytes->high, scene.state.bytes->low};
}

/// Control and the wheel look closer or from further away, a drag moves up and down: small blocks would never be high
/// enough to be seen otherwise. A double click shows a block by itself.
void look_closer(const Scene& scene, const PlotMouse& mouse, const ByteAxis& axis, double top_bytes) {
  if (!scene.blocks) return;
  ViewState& state = scene.state;
  const double length = axis.top_bytes - axis.low_bytes;
  if (const std::uint32_t number = mouse.double_clicked ? block_under(scene, mouse, axis) : kNone; number != kNone) {
    const Block& block = scene.blocks->blocks.all()[number];
    const BlockPicture& picture = block_picture(*scene.blocks, state, scene.derived, axis, scene.frame);
    double low = top_bytes, high = 0;  // wherever it lies while others come and go
    for (const BlockRect& rect : picture.blocks) {
      if (rect.block != number) continue;
      low = std::min(low, static_cast<double>(rect.low_bytes));
      high = std::max(high, static_cast<double>(rect.low_bytes) + static_cast<double>(block.bytes));
    }
    const auto around = static_cast<double>(block.bytes);
    state.bytes = ByteRange{std::max(0.0, low - around), std::min(top_bytes, high + around)};
    const std::int64_t last = scene.first->time_of(std::min(block.end, scene.first->event_count()));
    state.camera = fit(state.camera.origin_ns, {scene.first->time_of(block.begin), last}, 0.2);
    return;
  }
  if (mouse.wheel != 0) {
    const double closer = std::clamp(length * std::pow(1.25, -mouse.wheel), 4096.0, top_bytes);
    const double at = axis.bytes_at(mouse.y), share = (at - axis.low_bytes) / length;
    const double low = std::clamp(at - share * closer, 0.0, top_bytes - closer);
    state.bytes = ByteRange{low, low + closer};
  } else if (mouse.dragged_y != 0 && state.bytes) {
    const double moved = static_cast<double>(mouse.dragged_y) / static_cast<double>(axis.plot.height()) * length;
    const double low = std::clamp(axis.low_bytes + moved, 0.0, std::max(0.0, top_bytes - length));
    state.bytes = ByteRange{low, low + length};
  }
  if (state.bytes && state.bytes->high - state.bytes->low >= top_bytes) state.bytes.reset();
}

/// Heading and ground; the note gives way to the choice of colours.
void draw_heading(const Scene& scene, const PaneArea& pane, const std::string& note) {
  const Frame& frame = scene.frame;
  const std::string title = title_of(*scene.first);
  draw_pane_ground(scene.canvas, pane, title, "", frame);
  const float from = pane.title.x0 + frame.px(kPad) + scene.canvas.width_of(title, frame.fonts.bold) + frame.px(20);
  const float end = choose_colors(scene, pane.title, from);
  const float left = end > from ? end + frame.px(16) : from;
  const float right = pane.title.x1 - frame.px(kPad);
  const float width = scene.canvas.width_of(note, frame.fonts.small);
  scene.canvas.text_in({std::max(left, right - width - 1), pane.title.y0, right, pane.title.y1}, note, frame.theme.dim,
                       frame.fonts.small);
}

/// The allocator's memory under the mouse: a block, or the band it is part of.
bool hover_block(const Scene& scene, const PlotMouse& mouse, const ByteAxis& axis) {
  const std::uint32_t block = block_under(scene, mouse, axis);
  if (block == kNone) return false;
  ImGui::BeginTooltip();
  block_tooltip(scene.session, scene.derived, *scene.blocks, block, scene.frame);
  ImGui::EndTooltip();
  return true;
}

void hover_text(const Scene& scene, const PlotMouse& mouse, const Rect& plot, const ByteAxis& axis) {
  if (!mouse.hovered || scene.state.drag != Drag::none) return;
  if (hover_block(scene, mouse, axis)) return;
  ImGui::BeginTooltip();
  const std::int64_t time = time_at(scene.state.camera, mouse.x - plot.x0, plot.width());
  ImGui::TextDisabled("at %s", exact_time_text(time - scene.state.camera.origin_ns).c_str());
  const Document& document = scene.session.documents[0];
  const std::size_t moment = scene.first->moment_at(time);
  BytesByCategory stack{};  // of an allocator the legend says it
  if (!scene.blocks) stack = scene.first->stack_at(document.trace().memory, moment);
  for (std::size_t d = 0; d < scene.session.documents.size(); ++d) {
    const MemorySeries* series = series_of(scene, d);
    if (series == nullptr) continue;
    const std::int64_t own = d == 0 ? time : alignment_of(scene.session, scene.state.align, d).to_other(time);
    ImGui::Text("%s", size_text(series->bytes_at(series->moment_at(own))).c_str());
    ImGui::SameLine(scene.frame.px(90));
    ImGui::TextDisabled("%s", scene.session.documents.size() > 1 ? short_name(scene.session, d).c_str() : "live");
  }
  for (std::size_t c = kCategoryCount; c-- > 0;) {
    if (stack[c] == 0) continue;
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(scene.frame.theme.category[c]), "%s",
                       size_text(stack[c]).c_str());
    ImGui::SameLine(scene.frame.px(90));
    ImGui::TextDisabled("%s", in_words(to_string(static_cast<Category>(c))).c_str());
  }
  ImGui::EndTooltip();
}

}  // namespace

void draw_memory(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  PaneArea pane = cut_pane(area, frame);
  const MemorySeries* first = session.empty() ? nullptr : shown_memory(session.documents[0], state);
  if (first == nullptr) {
    draw_pane_ground(canvas, pane, "Memory", "", frame);
    plot_mouse("memory", pane.plot, session, state, frame);
    draw_empty(canvas, pane.plot, "There are no memory events here.",
               state.rank.valid() ? "Another rank may have some: choose 'all ranks' above."
               : session.empty() || !session.documents[0].trace().complete()
                   ? "There may be some in the part of the file that could not be read."
                   : "Traces of 'shardscope simulate' and 'shardscope train' have them.",
               frame);
    draw_time_marks(canvas, pane.plot, state, frame);
    return;
  }
  Scene scene{session, state, derived, frame, canvas, first};
  if (session.documents[0].of_allocator()) scene.blocks.emplace(block_view(session, state, derived, *first));
  std::string note = show_count(static_cast<std::int64_t>(first->event_count())) + " events";
  if (first->arena_peak_bytes() > 0)
    note += (scene.blocks ? "; reserved at most " : "; arena's extent ") + size_text(first->arena_peak_bytes());
  const double highest = highest_shown(scene, note);
  draw_heading(scene, pane, note);
  const PlotMouse mouse = plot_mouse("memory", pane.plot, session, state, frame);
  zoom_to_range(mouse, state);
  Rect plot = pane.plot;
  const bool compares = session.documents.size() > 1;
  Rect below = plot;
  if (compares) {
    plot.y1 = std::round(plot.y0 + plot.height() * (1 - kDifferenceShare));
    below.y0 = plot.y1 + frame.px(2);
  }
  const double top = highest * 1.12;
  look_closer(scene, mouse, byte_axis(scene, plot, top), top);
  const ByteAxis axis = byte_axis(scene, plot, top);
  if (mouse.clicked) {
    state.marker_ns = time_at(state.camera, mouse.x - pane.plot.x0, pane.plot.width());
    state.tab = Pane::live;
    if (const std::uint32_t block = block_under(scene, mouse, axis); block != kNone)
      select_block(state, scene.blocks->blocks.all()[block].acquired);
  }
  {
    const Clip clip(canvas, {area.x0, pane.plot.y0, area.x1, area.y1});
    draw_time_grid(canvas, plot, session, state, frame);
    draw_byte_grid(canvas, axis, frame);
    draw_live(scene, axis);
    draw_sizes(scene, axis);
    const Rect legend{pane.gutter.x0, plot.y0, pane.gutter.x1, plot.y1};
    const float lines = compares ? (canvas.line_height(frame.fonts.small) + frame.px(4)) *
                                       static_cast<float>(session.documents.size() - 1)
                                 : 0;
    const Rect above{legend.x0, legend.y0, legend.x1, legend.y1 - lines};
    if (scene.blocks) {
      draw_block_legend(session, canvas, *scene.blocks, state, above, frame);
    } else {
      draw_legend(scene, above);
    }
    if (compares) draw_traces(scene, legend);
    draw_limits(scene, axis);
    draw_peak(scene, axis);
    if (compares) {
      canvas.horizontal(area.x0, area.x1, plot.y1, frame.theme.border, frame.px(2));
      const std::size_t other = compared_document(state);
      draw_difference(session, state, derived, frame, {first, series_of(scene, other), other}, below, pane.gutter);
    }
  }
  draw_time_marks(canvas, pane.plot, state, frame);
  hover_text(scene, mouse, pane.plot, axis);
}

}  // namespace shard::view
