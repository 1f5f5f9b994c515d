// The chunk map.
#include "viewer/ui/chunk_pane.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "viewer/index/ticks.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/metrics.h"
#include "viewer/ui/pane_parts.h"
#include "viewer/ui/plot.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

constexpr float kTallestRow = 16;

/// Which units the rows show, and how tall a row is.
struct RowPlan {
  ChunkRows rows;
  float height = 1;  ///< of one row, pixels
};

RowPlan plan_rows(const ViewState& state, std::size_t units, float pixels, const Frame& frame) {
  const std::size_t first = std::min(state.chunk_first, units == 0 ? 0 : units - 1);
  const std::size_t count = state.chunk_count == 0 ? units - first : std::min(state.chunk_count, units - first);
  const auto room = static_cast<std::size_t>(std::max(1.0F, pixels));
  RowPlan plan;
  plan.rows.first = first;
  plan.rows.units_per_row = std::max<std::size_t>(1, (count + room - 1) / room);
  plan.rows.rows = static_cast<std::int32_t>((count + plan.rows.units_per_row - 1) / plan.rows.units_per_row);
  const float room_each = pixels / static_cast<float>(std::max(1, plan.rows.rows));
  // Rows of a few pixels may differ by one, so that the map fills its pane.
  plan.height =
      room_each < 5 ? std::max(1.0F, room_each) : std::min(std::floor(room_each), std::round(frame.px(kTallestRow)));
  return plan;
}

/// Shares of time and units as one colour; what is unknown shows the ground.
Color color_of_shares(const std::array<std::uint8_t, kChunkClassCount>& share, const Theme& theme) {
  std::array<double, 3> sum{};
  double known = 0;
  for (std::size_t c = 0; c < share.size(); ++c) {
    if (share[c] == 0) continue;
    const Color color = color_of(static_cast<ChunkClass>(c), theme);
    for (std::size_t i = 0; i < 3; ++i) sum[i] += static_cast<double>((color >> (8 * i)) & 0xFFU) * share[c];
    known += share[c];
  }
  if (known == 0) return theme.pane;
  Color mixed = 0xFF000000U;
  for (std::size_t i = 0; i < 3; ++i) mixed |= static_cast<Color>(std::lround(sum[i] / known)) << (8 * i);
  return mix(mixed, theme.pane, std::min(1.0, known / 255));
}

void draw_legend(const Canvas& canvas, const Rect& gutter, const Frame& frame) {
  const float line = canvas.line_height(frame.fonts.small) + frame.px(4);
  float y = gutter.y0 + frame.px(5);
  for (int c = 0; c < kChunkClassCount; ++c) {
    if (y + line > gutter.y1) return;
    const float box = frame.px(9);
    const float x = gutter.x0 + frame.px(kPad);
    canvas.fill({x, y + (line - box) / 2, x + box, y + (line + box) / 2},
                color_of(static_cast<ChunkClass>(c), frame.theme));
    canvas.text_in({x + box + frame.px(5), y, gutter.x1 - frame.px(60), y + line},
                   in_words(to_string(static_cast<ChunkClass>(c))), frame.theme.text, frame.fonts.small);
    y += line;
  }
}

}  // namespace

std::optional<std::size_t> chunk_document(const Session& session, const ViewState& state) {
  for (std::size_t i = 0; i <= session.documents.size(); ++i) {
    const std::size_t document = i == 0 ? state.document : i - 1;
    if (document < session.documents.size() && !session.documents[document].chunks().empty()) return document;
  }
  return std::nullopt;
}

Color color_of(ChunkClass value, const Theme& theme) {
  return theme.chunk[static_cast<std::size_t>(value)];
}

void draw_chunks(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area) {
  const Canvas canvas(frame);
  const PaneArea pane = cut_pane(area, frame);
  const std::optional<std::size_t> shown = chunk_document(session, state);
  const ChunkMap* map = shown ? &session.documents[*shown].chunks() : nullptr;
  Rank rank = state.rank;
  if (map != nullptr && (!rank.valid() || map->units(rank).empty())) rank = map->ranks().front();
  if (map == nullptr) {
    draw_pane_ground(canvas, pane, "Chunks", "", frame);
    plot_mouse("chunks", pane.plot, session, state, frame);
    draw_empty(canvas, pane.plot, "The trace does not say where chunks are.",
               "Traces of 'shardscope simulate' and 'train' do where parameters are sharded (--stage 3).", frame);
    draw_time_marks(canvas, pane.plot, state, frame);
    return;
  }
  const std::span<const UnitId> units = map->units(rank);
  const RowPlan plan = plan_rows(state, units.size(), pane.plot.height() - 2, frame);
  std::string title = "Chunks of rank " + std::to_string(rank.value);
  if (session.documents.size() > 1) title += ", " + short_name(session, *shown);
  std::string note = show_count(static_cast<std::int64_t>(units.size())) + " units";
  if (plan.rows.units_per_row > 1) note += ", " + std::to_string(plan.rows.units_per_row) + " on each row";
  draw_pane_ground(canvas, pane, title, note, frame);
  const PlotMouse mouse = plot_mouse("chunks", pane.plot, session, state, frame);

  zoom_to_range(mouse, state);
  const Clip clip(canvas, {area.x0, pane.plot.y0, area.x1, area.y1});
  draw_legend(canvas, pane.gutter, frame);
  const float top = pane.plot.y0 + 1;
  const bool gaps = plan.height >= 5;
  const PixelRange view = pixels(state.camera, static_cast<std::int32_t>(pane.plot.width()));
  const Alignment alignment = alignment_of(session, state.align, *shown);
  map->draw(rank, plan.rows, *shown == 0 ? view : alignment.to_other(view), derived.chunk_runs);
  for (const ChunkRun& run : derived.chunk_runs) {
    const float y = top + static_cast<float>(run.row) * plan.height;
    canvas.fill({pane.plot.x0 + static_cast<float>(run.first_column), y,
                 pane.plot.x0 + static_cast<float>(run.last_column), y + plan.height - (gaps ? 1.0F : 0.0F)},
                color_of_shares(run.share, frame.theme));
  }
  // Names of rows, as many as fit.
  const float line = canvas.line_height(frame.fonts.small);
  const auto every = static_cast<std::int32_t>(std::ceil((line + 2) / plan.height));
  float free_from = 0;
  for (std::int32_t row = 0; row < plan.rows.rows; row += every) {
    const std::size_t unit = plan.rows.first + static_cast<std::size_t>(row) * plan.rows.units_per_row;
    const float middle = top + (static_cast<float>(row) + 0.5F) * plan.height;
    const float y = std::max(pane.plot.y0, middle - line / 2);
    // The first name may have been moved down from the edge.
    if (y < free_from) continue;
    free_from = y + line;
    canvas.text(pane.gutter.x1 - frame.px(6), y, map->name_of(units[unit]), frame.theme.dim, Anchor::right,
                frame.fonts.small);
  }
  const auto row_of = [&](std::size_t position) -> std::optional<std::int32_t> {
    if (position < plan.rows.first) return std::nullopt;
    const auto row = static_cast<std::int32_t>((position - plan.rows.first) / plan.rows.units_per_row);
    return row < plan.rows.rows ? std::optional(row) : std::nullopt;
  };
  if (state.chunk && state.chunk->rank == rank) {
    if (const auto position = map->position_of(rank, state.chunk->unit)) {
      if (const auto row = row_of(*position)) {
        const float y = top + static_cast<float>(*row) * plan.height;
        canvas.outline({pane.plot.x0, y - 1, pane.plot.x1, y + std::max(2.0F, plan.height)}, frame.theme.text);
      }
    }
  }
  if (frame.items != nullptr) {
    for (std::int32_t row = 0; row < plan.rows.rows; ++row) {
      const std::size_t unit = plan.rows.first + static_cast<std::size_t>(row) * plan.rows.units_per_row;
      const float y = top + static_cast<float>(row) * plan.height;
      frame.name("chunk:" + std::to_string(units[unit].value), {pane.plot.x0, y, pane.plot.x1, y + plan.height});
    }
  }
  const auto row = static_cast<std::int32_t>((mouse.y - top) / plan.height);
  if (mouse.hovered && mouse.y >= top && row < plan.rows.rows) {
    const std::size_t position = plan.rows.first + static_cast<std::size_t>(row) * plan.rows.units_per_row;
    const UnitId unit = units[position];
    if (mouse.clicked) {
      state.chunk = ChunkRef{rank, unit};
      state.tab = Pane::selection;
    }
    if (state.drag == Drag::none) {
      std::int64_t time = time_at(state.camera, mouse.x - pane.plot.x0, pane.plot.width());
      if (*shown != 0) time = alignment.to_other(time);
      ImGui::BeginTooltip();
      ImGui::TextUnformatted(map->name_of(unit).c_str());
      if (const auto stretch = map->at(rank, unit, time)) {
        ImGui::TextDisabled("%s", in_words(to_string(chunk_class(stretch->state, stretch->memory))).c_str());
        ImGui::TextDisabled("for %s", duration_text(stretch->time.length_ns()).c_str());
      } else {
        ImGui::TextDisabled("no state yet");
      }
      if (plan.rows.units_per_row > 1)
        ImGui::TextDisabled("and %zu more units on this row; ctrl + wheel spreads them", plan.rows.units_per_row - 1);
      ImGui::EndTooltip();
    }
    if (mouse.wheel != 0) {
      // The row under the mouse stays where it is.
      const double spread = static_cast<double>(state.chunk_count == 0 ? units.size() : state.chunk_count);
      const double count = std::clamp(spread * std::pow(1.5, -mouse.wheel), 1.0, static_cast<double>(units.size()));
      const double at = (mouse.y - top) / std::max(1.0F, plan.height * static_cast<float>(plan.rows.rows));
      const double from = static_cast<double>(position) - at * count;
      state.chunk_count = static_cast<std::size_t>(std::lround(count));
      state.chunk_first =
          static_cast<std::size_t>(std::lround(std::clamp(from, 0.0, static_cast<double>(units.size()) - count)));
      if (state.chunk_count == units.size()) state.chunk_count = 0;
    }
  }
  draw_time_marks(canvas, pane.plot, state, frame);
}

}  // namespace shard::view
