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

/// What the pane shows: the chunks of one rank of one document, on rows.
struct ChunkScene {
  const Session& session;
  ViewState& state;
  const Frame& frame;
  const Canvas& canvas;
  const PaneArea& pane;
  const ChunkMap& map;
  std::size_t document;
  Rank rank;
  std::span<const UnitId> units;
  RowPlan plan;

  [[nodiscard]] float top() const { return pane.plot.y0 + 1; }
  [[nodiscard]] float y(std::int32_t row) const { return top() + static_cast<float>(row) * plan.height; }
  /// Of the first unit of a row.
  [[nodiscard]] std::size_t position(std::int32_t row) const {
    return plan.rows.first + static_cast<std::size_t>(row) * plan.rows.units_per_row;
  }
};

void draw_states(const ChunkScene& scene, const Alignment& alignment, std::vector<ChunkRun>& runs) {
  const Rect& plot = scene.pane.plot;
  const float gap = scene.plan.height >= 5 ? 1.0F : 0.0F;
  const PixelRange view = pixels(scene.state.camera, static_cast<std::int32_t>(plot.width()));
  scene.map.draw(scene.rank, scene.plan.rows, scene.document == 0 ? view : alignment.to_other(view), runs);
  for (const ChunkRun& run : runs) {
    const float y = scene.y(run.row);
    scene.canvas.fill({plot.x0 + static_cast<float>(run.first_column), y, plot.x0 + static_cast<float>(run.last_column),
                       y + scene.plan.height - gap},
                      color_of_shares(run.share, scene.frame.theme));
  }
}

/// Names of rows, as many as fit.
void draw_names(const ChunkScene& scene) {
  const Frame& frame = scene.frame;
  const float line = scene.canvas.line_height(frame.fonts.small);
  const auto every = static_cast<std::int32_t>(std::ceil((line + 2) / scene.plan.height));
  float free_from = 0;
  for (std::int32_t row = 0; row < scene.plan.rows.rows; row += every) {
    const float y = std::max(scene.pane.plot.y0, scene.y(row) + scene.plan.height / 2 - line / 2);
    // The first name may have been moved down from the edge.
    if (y < free_from) continue;
    free_from = y + line;
    scene.canvas.text(scene.pane.gutter.x1 - frame.px(6), y, scene.map.name_of(scene.units[scene.position(row)]),
                      frame.theme.dim, Anchor::right, frame.fonts.small);
  }
}

/// Around the row of the selected chunk.
void draw_selected(const ChunkScene& scene) {
  const std::optional<ChunkRef>& chunk = scene.state.chunk;
  if (!chunk || chunk->rank != scene.rank) return;
  const auto position = scene.map.position_of(scene.rank, chunk->unit);
  if (!position || *position < scene.plan.rows.first) return;
  const auto row = static_cast<std::int32_t>((*position - scene.plan.rows.first) / scene.plan.rows.units_per_row);
  if (row >= scene.plan.rows.rows) return;
  const Rect& plot = scene.pane.plot;
  const float y = scene.y(row);
  scene.canvas.outline({plot.x0, y - 1, plot.x1, y + std::max(2.0F, scene.plan.height)}, scene.frame.theme.text);
}

void hover_text(const ChunkScene& scene, UnitId unit, std::int64_t time) {
  ImGui::BeginTooltip();
  ImGui::TextUnformatted(scene.map.name_of(unit).c_str());
  if (const UnitInfo* info = scene.map.info_of(unit); info != nullptr && info->elements > 0)
    ImGui::TextDisabled("%s elements, %s", show_count(info->elements).c_str(), size_text(info->bytes).c_str());
  if (const auto stretch = scene.map.at(scene.rank, unit, time)) {
    ImGui::TextDisabled("%s", in_words(to_string(chunk_class(stretch->state, stretch->memory))).c_str());
    ImGui::TextDisabled("for %s", duration_text(stretch->time.length_ns()).c_str());
  } else {
    ImGui::TextDisabled("no state yet");
  }
  if (scene.plan.rows.units_per_row > 1)
    ImGui::TextDisabled("and %zu more units on this row; ctrl + wheel spreads them", scene.plan.rows.units_per_row - 1);
  ImGui::EndTooltip();
}

/// More units or fewer; the row under the mouse stays where it is.
void spread(const ChunkScene& scene, const PlotMouse& mouse, std::size_t position) {
  ViewState& state = scene.state;
  const auto all = static_cast<double>(scene.units.size());
  const double shown = state.chunk_count == 0 ? all : static_cast<double>(state.chunk_count);
  const double count = std::clamp(shown * std::pow(1.5, -mouse.wheel), 1.0, all);
  const double at =
      (mouse.y - scene.top()) / std::max(1.0F, scene.plan.height * static_cast<float>(scene.plan.rows.rows));
  const double from = static_cast<double>(position) - at * count;
  state.chunk_count = static_cast<std::size_t>(std::lround(count));
  state.chunk_first = static_cast<std::size_t>(std::lround(std::clamp(from, 0.0, all - count)));
  if (state.chunk_count == scene.units.size()) state.chunk_count = 0;
}

void act_on_mouse(const ChunkScene& scene, const PlotMouse& mouse, const Alignment& alignment) {
  const auto row = static_cast<std::int32_t>((mouse.y - scene.top()) / scene.plan.height);
  if (!mouse.hovered || mouse.y < scene.top() || row >= scene.plan.rows.rows) return;
  const std::size_t position = scene.position(row);
  const UnitId unit = scene.units[position];
  if (mouse.clicked) {
    scene.state.chunk = ChunkRef{scene.rank, unit};
    scene.state.tab = Pane::selection;
  }
  if (scene.state.drag == Drag::none) {
    const std::int64_t time = time_at(scene.state.camera, mouse.x - scene.pane.plot.x0, scene.pane.plot.width());
    hover_text(scene, unit, scene.document == 0 ? time : alignment.to_other(time));
  }
  if (mouse.wheel != 0) spread(scene, mouse, position);
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
  const ChunkScene scene{session, state,  frame, canvas, pane,
                         *map,    *shown, rank,  units,  plan_rows(state, units.size(), pane.plot.height() - 2, frame)};
  std::string title = "Chunks of rank " + std::to_string(rank.value);
  if (session.documents.size() > 1) title += ", " + short_name(session, *shown);
  std::string note = show_count(static_cast<std::int64_t>(units.size())) + " units";
  if (scene.plan.rows.units_per_row > 1) note += ", " + std::to_string(scene.plan.rows.units_per_row) + " on each row";
  draw_pane_ground(canvas, pane, title, note, frame);
  const PlotMouse mouse = plot_mouse("chunks", pane.plot, session, state, frame);

  zoom_to_range(mouse, state);
  const Clip clip(canvas, {area.x0, pane.plot.y0, area.x1, area.y1});
  draw_legend(canvas, pane.gutter, frame);
  const Alignment& alignment = alignment_of(session, state.align, *shown);
  draw_states(scene, alignment, derived.chunk_runs);
  draw_names(scene);
  draw_selected(scene);
  if (frame.items != nullptr) {
    for (std::int32_t row = 0; row < scene.plan.rows.rows; ++row)
      frame.name("chunk:" + std::to_string(units[scene.position(row)].value),
                 {pane.plot.x0, scene.y(row), pane.plot.x1, scene.y(row) + scene.plan.height});
  }
  act_on_mouse(scene, mouse, alignment);
  draw_time_marks(canvas, pane.plot, state, frame);
}

}  // namespace shard::view
