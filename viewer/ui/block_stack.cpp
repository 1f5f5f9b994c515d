// Bands first, block by block on top of them.
#include "viewer/ui/block_stack.h"

#include <algorithm>
#include <cmath>

#include "viewer/index/ticks.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

/// Neighbours are told apart by their shade.
constexpr std::array kShades = {1.0, 0.88, 0.77};
/// A block less high than this is part of its band, in logical pixels.
constexpr float kLeastHeight = 2.5F;
/// From this size on a block has an edge; smaller ones would be nothing but edge.
constexpr float kEdgedHeight = 5, kEdgedWidth = 4;

void draw_bands(const Canvas& canvas, const ByteAxis& axis, const BlockView& view, const BlockPicture& picture,
                const Theme& theme) {
  for (std::size_t i = 0; i < picture.columns.size();) {
    std::size_t end = i + 1;
    while (end < picture.columns.size() && picture.stacks[end] == picture.stacks[i] &&
           picture.columns[end].lowest_bytes == picture.columns[i].lowest_bytes)
      ++end;
    const float x0 = axis.plot.x0 + static_cast<float>(i), x1 = axis.plot.x0 + static_cast<float>(end);
    double sum = 0;
    float bottom = axis.y(0);
    for (std::size_t c = 0; c < view.classes.all().size(); ++c) {
      const std::int64_t bytes = picture.stacks[i].bytes[c];
      if (bytes <= 0) continue;
      sum += static_cast<double>(bytes);
      const float top = axis.y(sum);
      canvas.fill({x0, top, x1, bottom}, color_of(view, c, theme));
      bottom = top;
    }
    i = end;
  }
}

/// What is reached for a part of the column only is paler, over bands and blocks.
void draw_passing(const Canvas& canvas, const ByteAxis& axis, const BlockPicture& picture, const Theme& theme) {
  for (std::size_t i = 0; i < picture.columns.size(); ++i) {
    const MomentColumn& column = picture.columns[i];
    const float high = axis.y(static_cast<double>(column.highest_bytes));
    const float low = axis.y(static_cast<double>(std::max<std::int64_t>(0, column.lowest_bytes)));
    const float x = axis.plot.x0 + static_cast<float>(i);
    if (low - high > 0.5F) canvas.fill({x, high, x + 1, low}, with_alpha(theme.pane, 70));
  }
}

/// Along its upper and lower edge wherever it lies, closed at both ends.
void draw_selected(const Canvas& canvas, const ByteAxis& axis, const BlockView& view, const BlockPicture& picture,
                   std::uint32_t event, const Frame& frame) {
  const float thick = frame.px(2);
  std::int32_t first = INT32_MAX, last = -1;
  const auto selected = [&](const BlockRect& each) { return view.blocks.all()[each.block].acquired == event; };
  for (const BlockRect& each : picture.blocks) {
    if (!selected(each)) continue;
    first = std::min(first, each.x0);
    last = std::max(last, each.x1);
  }
  for (const BlockRect& each : picture.blocks) {
    if (!selected(each)) continue;
    const auto bytes = static_cast<double>(view.blocks.all()[each.block].bytes);
    const Rect rect{axis.plot.x0 + static_cast<float>(each.x0), axis.y(static_cast<double>(each.low_bytes) + bytes),
                    axis.plot.x0 + static_cast<float>(each.x1), axis.y(static_cast<double>(each.low_bytes))};
    canvas.fill({rect.x0, rect.y0 - thick / 2, rect.x1, rect.y0 + thick / 2}, frame.theme.text);
    canvas.fill({rect.x0, rect.y1 - thick / 2, rect.x1, rect.y1 + thick / 2}, frame.theme.text);
    if (each.x0 == first) canvas.fill({rect.x0 - thick / 2, rect.y0, rect.x0 + thick / 2, rect.y1}, frame.theme.text);
    if (each.x1 == last) canvas.fill({rect.x1 - thick / 2, rect.y0, rect.x1 + thick / 2, rect.y1}, frame.theme.text);
  }
}

}  // namespace

const BlockPicture& block_picture(const BlockView& view, const ViewState& state, Derived& derived, const ByteAxis& axis,
                                  const Frame& frame) {
  const PixelRange range = pixels(state.camera, static_cast<std::int32_t>(axis.plot.width()));
  const double pixel = (axis.top_bytes - axis.low_bytes) / std::max(1.0, static_cast<double>(axis.plot.height()));
  const auto least = static_cast<std::int64_t>(std::ceil(pixel * static_cast<double>(frame.px(kLeastHeight))));
  const BlockDetail detail{.least_bytes = least,
                           .low_bytes = static_cast<std::int64_t>(axis.low_bytes),
                           .high_bytes = static_cast<std::int64_t>(axis.top_bytes),
                           .most_rects = many_vertices() ? std::size_t{20'000} : std::size_t{2'000}};
  const RangeKey time{range.time.begin_ns, range.time.end_ns}, bytes{detail.low_bytes, detail.high_bytes};
  return derived.block_picture.get({&view.series, view.by, time, range.width, bytes, least}, [&] {
    BlockPicture picture;
    draw_blocks(view.series, view.blocks, view.classes, range, detail, picture);
    return picture;
  });
}

void draw_block_stack(const Canvas& canvas, const ByteAxis& axis, const BlockView& view, const BlockPicture& picture,
                      const ViewState& state, const Frame& frame) {
  const Theme& theme = frame.theme;
  draw_bands(canvas, axis, view, picture, theme);
  for (const BlockRect& each : picture.blocks) {
    const Block& block = view.blocks.all()[each.block];
    const Color color = color_of(view, view.classes.of(each.block), theme);
    const Rect rect{axis.plot.x0 + static_cast<float>(each.x0),
                    axis.y(static_cast<double>(each.low_bytes) + static_cast<double>(block.bytes)),
                    axis.plot.x0 + static_cast<float>(each.x1), axis.y(static_cast<double>(each.low_bytes))};
    canvas.fill(rect, mix(color, theme.pane, kShades[each.block % kShades.size()]));
    if (rect.height() >= frame.px(kEdgedHeight) && rect.width() >= 3) {
      const Color edge = mix(color, theme.pane, 0.5);
      canvas.fill({rect.x0, rect.y0, rect.x1, rect.y0 + 1}, edge);
      const auto before = static_cast<std::size_t>(std::max(0, each.x0 - 1));
      const bool begins = each.x0 > 0 && picture.columns[before].highest_moment < block.begin;
      if (begins && rect.width() >= frame.px(kEdgedWidth)) canvas.fill({rect.x0, rect.y0, rect.x0 + 1, rect.y1}, edge);
    }
    if (frame.items != nullptr && rect.width() >= 4 && rect.height() >= 4)
      frame.name("block:" + std::to_string(block.acquired), rect);
  }
  draw_passing(canvas, axis, picture, theme);
  if (state.block) draw_selected(canvas, axis, view, picture, state.block->event, frame);
}

void draw_reserved(const Session& session, const Canvas& canvas, const ByteAxis& axis, const BlockView& view,
                   const ViewState& state, Derived& derived, const Frame& frame) {
  const Document& document = session.documents[0];
  const auto series = std::ranges::find_if(document.counters(), [&](const CounterSeries& each) {
    return each.rank == view.series.rank() && document.trace().name_of(each.name) == "reserved_bytes";
  });
  if (series == document.counters().end() || view.series.memory() != Memory::device) return;
  series->curve.columns(pixels(state.camera, static_cast<std::int32_t>(axis.plot.width())), derived.values);
  const float thick = std::max(1.0F, std::round(frame.px(1)));
  for (std::size_t i = 0; i < derived.values.size(); ++i) {
    const ValueColumn& column = derived.values[i];
    if (!column.any) continue;
    const float x = axis.plot.x0 + static_cast<float>(i), top = std::round(axis.y(column.highest));
    canvas.fill({x, top, x + 1, std::max(top + thick, std::round(axis.y(column.lowest)))}, frame.theme.dim);
  }
  if (derived.values.empty() || !derived.values.back().any) return;
  const float y = axis.y(derived.values.back().last);
  if (y < axis.plot.y0 || y > axis.plot.y1) return;
  canvas.label(axis.plot.x1 - frame.px(4), y - canvas.line_height(frame.fonts.small) - frame.px(7), "reserved",
               frame.theme.dim, with_alpha(frame.theme.pane, 200), axis.plot, Anchor::right);
}

void draw_block_legend(const Session& session, const Canvas& canvas, const BlockView& view, const ViewState& state,
                       const Rect& gutter, const Frame& frame) {
  const Theme& theme = frame.theme;
  ImFont* small = frame.fonts.small;
  const LookedAt look = looked_at(session, state, view.series, true);
  const ClassStack stack = view.classes.at(view.blocks, look.moment);
  const std::int64_t total = view.series.bytes_at(look.moment);
  const float line = canvas.line_height(small) + frame.px(3), pad = frame.px(kPad);
  const float left = gutter.x0 + pad, right = gutter.x1 - pad;
  const float blocks_at = right - frame.px(46), bytes_at = blocks_at - frame.px(46);
  float y = gutter.y0 + frame.px(5);
  canvas.text_in({left, y, right, y + line}, look.when, theme.dim, small);
  canvas.text(right, y, size_text(total), theme.text, Anchor::right, frame.fonts.bold);
  y += line + frame.px(2);
  const auto columns = [&](const std::string& bytes, const std::string& blocks, const std::string& share, Color ink) {
    canvas.text(bytes_at, y, bytes, ink, Anchor::right, small);
    canvas.text(blocks_at, y, blocks, ink, Anchor::right, small);
    canvas.text(right, y, share, ink, Anchor::right, small);
    y += line;
  };
  columns("bytes", "blocks", "share", theme.dim);
  for (const std::size_t c : view.classes.by_peak()) {
    if (y + 2 * line > gutter.y1) break;
    const MemoryClass& each = view.classes.all()[c];
    const bool none = stack.blocks[c] == 0;
    const Color ink = none ? theme.dim : theme.text;
    const float box = frame.px(9), middle = y + line / 2;
    canvas.fill({left, middle - box / 2, left + box, middle + box / 2}, color_of(view, c, theme));
    const bool others = view.by != MemoryBy::category && each.sites > 1;
    canvas.text_in({left + box + frame.px(5), y, right, y + line},
                   others ? show_count(each.sites) + " " + each.name : each.name, ink, small);
    y += line;
    const double share = total > 0 ? static_cast<double>(stack.bytes[c]) / static_cast<double>(total) : 0;
    columns(none ? "0" : size_text(stack.bytes[c]), show_count(stack.blocks[c]), none ? "0 %" : show_percent(share),
            theme.dim);
    y += frame.px(3);
  }
}

}  // namespace shard::view
