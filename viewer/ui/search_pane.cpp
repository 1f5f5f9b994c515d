// The result of a chunk search: three curves over chunk size, and the chosen point's plan.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "viewer/index/ticks.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/side_panes.h"
#include "viewer/ui/text.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

/// Of the elements that there are, as `shardscope search` says it.
double waste_share(const SearchResult& result, const SearchPoint& point) {
  return result.total_elements > 0
             ? static_cast<double>(point.waste_elements) / static_cast<double>(result.total_elements)
             : 0;
}

/// One curve over chunk size. A value that a point lacks leaves a gap.
struct Curve {
  const char* title;
  std::function<std::optional<double>(const SearchPoint&)> value;
  std::function<std::string(double)> show;
};

/// Chunk sizes as they are typed: 32Mi, 858880 as 859k.
std::string elements_text(double elements) {
  constexpr std::array<const char*, 4> kUnits{"", "k", "M", "G"};
  std::size_t unit = 0;
  while (elements >= 1000 && unit + 1 < kUnits.size()) {
    elements /= 1000;
    ++unit;
  }
  return show_number(std::round(elements * 100) / 100) + kUnits[unit];
}

struct Chart {
  const SearchResult& result;
  const Curve& curve;
  Rect plot;
  double x_low, x_high, y_low, y_high;

  [[nodiscard]] float x(const SearchPoint& point) const {
    return plot.x0 +
           static_cast<float>((static_cast<double>(point.chunk_elements) - x_low) / (x_high - x_low)) * plot.width();
  }
  [[nodiscard]] float y(double value) const {
    return plot.y1 - static_cast<float>((value - y_low) / (y_high - y_low)) * plot.height();
  }
};

/// The line of chunks of different sizes: what they are.
std::string variable_text(const SearchPoint& point) {
  return "variable: " + show_count(point.chunk_count) + (point.chunk_count == 1 ? " chunk" : " chunks") + ", largest " +
         elements_text(static_cast<double>(point.chunk_elements)) + " elements";
}

Color variable_color(const SearchResult& result, const Theme& theme) {
  return result.answer_is_variable() ? theme.warning : theme.series[3];
}

/// Chunks of different sizes have no place on the axis of chunk sizes: a line across at their value, which stands at
/// the right of the title, `top`.
void draw_variable(const Canvas& canvas, const Chart& chart, float top, const Frame& frame) {
  if (!chart.result.variable) return;
  const auto value = chart.curve.value(*chart.result.variable);
  if (!value) return;
  const Color color = variable_color(chart.result, frame.theme);
  const float y = std::min(chart.y(*value), chart.plot.y1 - frame.px(1));
  canvas.dashed_horizontal(chart.plot.x0, chart.plot.x1, y, color, frame.px(6));
  canvas.text(chart.plot.x1, top, variable_text(*chart.result.variable) + ": " + chart.curve.show(*value), color,
              Anchor::right, frame.fonts.small);
  frame.name("variable:" + std::string(chart.curve.title),
             {chart.plot.x0, y - frame.px(1), chart.plot.x1, y + frame.px(1)});
}

bool in_front(const SearchResult& result, std::size_t point) {
  return std::ranges::find(result.pareto, point) != result.pareto.end();
}

void draw_points(const Canvas& canvas, const Chart& chart, const ViewState& state, const Frame& frame) {
  const Theme& theme = frame.theme;
  const auto& points = chart.result.points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto value = chart.curve.value(points[i]);
    if (!value) continue;
    const float x = chart.x(points[i]);
    const float y = chart.y(*value);
    if (i > 0) {
      if (const auto before = chart.curve.value(points[i - 1]))
        canvas.line(chart.x(points[i - 1]), chart.y(*before), x, y, with_alpha(theme.accent, 120));
    }
    canvas.dot(x, y, frame.px(2), theme.accent);
  }
  for (const std::size_t i : chart.result.pareto) {
    if (const auto value = chart.curve.value(points[i]))
      canvas.dot(chart.x(points[i]), chart.y(*value), frame.px(4), theme.good);
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto value = chart.curve.value(points[i]);
    if (!value) continue;
    if (!chart.result.answer_is_variable() && points[i].chunk_elements == chart.result.answer.chunk_elements)
      canvas.ring(chart.x(points[i]), chart.y(*value), frame.px(7), theme.warning);
    if (state.search_point == i) canvas.ring(chart.x(points[i]), chart.y(*value), frame.px(9), theme.text);
    if (frame.items != nullptr) {
      const float reach = frame.px(3);
      frame.name(
          "point:" + std::string(chart.curve.title) + "/" + std::to_string(i),
          {chart.x(points[i]) - reach, chart.y(*value) - reach, chart.x(points[i]) + reach, chart.y(*value) + reach});
    }
  }
}

/// The point whose mark is nearest, within a finger's width.
std::optional<std::size_t> nearest(const Chart& chart, float x, float y, float reach) {
  std::optional<std::size_t> best;
  float least = reach * reach;
  for (std::size_t i = 0; i < chart.result.points.size(); ++i) {
    const auto value = chart.curve.value(chart.result.points[i]);
    if (!value) continue;
    const float dx = chart.x(chart.result.points[i]) - x;
    const float dy = chart.y(*value) - y;
    if (dx * dx + dy * dy < least) {
      least = dx * dx + dy * dy;
      best = i;
    }
  }
  return best;
}

/// `chunk`: what point.chunk_elements is.
void point_facts(const SearchResult& result, const SearchPoint& point, const char* chunk, const Frame& frame) {
  if (!point.label.empty()) fact("plan", point.label, frame);
  const double bytes = static_cast<double>(result.bytes_per_element);
  fact(chunk,
       show_count(point.chunk_elements) + " elements, " +
           size_text(static_cast<std::int64_t>(static_cast<double>(point.chunk_elements) * bytes)),
       frame);
  fact("chunks", show_count(point.chunk_count), frame);
  fact("waste",
       show_percent(waste_share(result, point)) + ", " +
           size_text(static_cast<std::int64_t>(static_cast<double>(point.waste_elements) * bytes)),
       frame);
  fact("gathered at once",
       size_text(static_cast<std::int64_t>(static_cast<double>(point.gather_working_set_elements) * bytes)), frame);
  if (point.peak_device_bytes) fact("peak, device", size_text(*point.peak_device_bytes), frame);
  if (point.step_seconds) fact("step", duration_text(static_cast<std::int64_t>(*point.step_seconds * 1e9)), frame);
}

void answer_facts(const SearchResult& result, const Frame& frame) {
  point_facts(result, result.answer, result.answer_is_variable() ? "largest chunk" : "chunk", frame);
}

/// What colours and lines mean.
void legend(const SearchResult& result, const Frame& frame) {
  const auto entry = [&](Color color, const std::string& text) {
    swatch(color, frame);
    hint(text, frame);
  };
  entry(frame.theme.good, "Pareto front");
  ImGui::SameLine(0, frame.px(14));
  if (!result.answer_is_variable()) {
    entry(frame.theme.warning, "answer");
    ImGui::SameLine(0, frame.px(14));
  }
  hint("click a point for its plan", frame);
  if (result.variable)
    entry(variable_color(result, frame.theme), std::string(result.answer_is_variable() ? "answer, " : "") +
                                                   variable_text(*result.variable) + "; a line across");
}

void draw_chart(const SearchResult& result, const Curve& curve, ViewState& state, const Frame& frame, float height) {
  const Canvas canvas(frame);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float left = frame.px(66);
  const float line = canvas.line_height(frame.fonts.small);
  const Rect plot{at.x + left, at.y + line + frame.px(16), at.x + width - frame.px(10),
                  at.y + height - line - frame.px(11)};
  ImGui::InvisibleButton(curve.title, ImVec2(width, height));
  canvas.text(at.x, at.y + frame.px(2), curve.title, frame.theme.text);
  if (plot.width() < 10 || plot.height() < 10) return;
  canvas.fill(plot, mix(frame.theme.bar, frame.theme.pane, 0.35));
  double y_high = 0;
  double y_low = 1e300;
  const auto reach = [&](const SearchPoint& point) {
    if (const auto value = curve.value(point)) {
      y_high = std::max(y_high, *value);
      y_low = std::min(y_low, *value);
    }
  };
  for (const SearchPoint& point : result.points) reach(point);
  if (result.variable) reach(*result.variable);
  if (y_low > y_high) {
    canvas.text_in({plot.x0 + frame.px(8), plot.y0, plot.x1, plot.y1}, "not simulated: search with a --cluster",
                   frame.theme.dim, frame.fonts.small);
    return;
  }
  // From 0 unless that would flatten the curve.
  if (y_low < 0.5 * y_high) y_low = 0;
  const double room = std::max((y_high - y_low) * 0.12, y_high * 1e-6 + 1e-12);
  const double x_low = static_cast<double>(result.points.front().chunk_elements);
  const double x_high = static_cast<double>(result.points.back().chunk_elements);
  const double x_room = std::max((x_high - x_low) * 0.04, 1.0);
  const Chart chart{result, curve, plot, x_low - x_room, x_high + x_room, y_low == 0 ? 0 : y_low - room, y_high + room};
  constexpr int kLines = 3;
  for (int i = 0; i <= kLines; ++i) {
    const double value = chart.y_low + (chart.y_high - chart.y_low) * i / kLines;
    const float y = chart.y(value);
    canvas.horizontal(plot.x0, plot.x1, std::min(y, plot.y1 - 1), frame.theme.grid);
    canvas.text(plot.x0 - frame.px(5), y - line / 2, curve.show(value), frame.theme.dim, Anchor::right,
                frame.fonts.small);
  }
  canvas.text(plot.x0, plot.y1 + frame.px(5), elements_text(x_low), frame.theme.dim, Anchor::left, frame.fonts.small);
  canvas.text(plot.x0 + plot.width() / 2, plot.y1 + frame.px(5), "chunk size, elements", frame.theme.dim,
              Anchor::center, frame.fonts.small);
  canvas.text(plot.x1, plot.y1 + frame.px(5), elements_text(x_high), frame.theme.dim, Anchor::right, frame.fonts.small);
  draw_variable(canvas, chart, at.y + frame.px(3), frame);
  draw_points(canvas, chart, state, frame);
  if (ImGui::IsItemHovered()) {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    if (const auto point = nearest(chart, mouse.x, mouse.y, frame.px(14))) {
      if (ImGui::IsMouseClicked(0)) state.search_point = point;
      ImGui::BeginTooltip();
      point_facts(result, result.points[*point], "chunk", frame);
      ImGui::EndTooltip();
    }
  }
}

}  // namespace

void draw_search_result(const Session& session, ViewState& state, const Frame& frame) {
  if (!session.search) {
    hint(
        "Open the result of a search to see it here: shardscope search --model gpt2 --json > result.json, then "
        "shardscope view --search result.json",
        frame);
    return;
  }
  const SearchResult& result = *session.search;
  if (result.points.empty()) {
    hint("The search has an answer but no curve to plot.", frame);
    answer_facts(result, frame);
    return;
  }
  const std::size_t chosen = state.search_point.value_or(result.points.size());
  heading(chosen < result.points.size() ? "Chosen point" : "Answer of rule " + result.rule, frame);
  if (chosen < result.points.size()) {
    point_facts(result, result.points[chosen], "chunk", frame);
    fact("Pareto front", in_front(result, chosen) ? "on it: nothing beats this in all three" : "beaten in all three",
         frame);
  } else {
    answer_facts(result, frame);
    hint(result.why, frame);
  }
  ImGui::Spacing();
  legend(result, frame);
  const std::array<Curve, 3> curves{
      {{"Waste", [&](const SearchPoint& p) { return std::optional(waste_share(result, p)); }, show_percent},
       {"Peak, device",
        [](const SearchPoint& p) {
          return p.peak_device_bytes ? std::optional(static_cast<double>(*p.peak_device_bytes)) : std::nullopt;
        },
        [](double bytes) { return size_text(static_cast<std::int64_t>(bytes)); }},
       {"Step time", [](const SearchPoint& p) { return p.step_seconds; },
        [](double seconds) { return duration_text(static_cast<std::int64_t>(seconds * 1e9)); }}}};
  const float height = std::max(frame.px(90), (ImGui::GetContentRegionAvail().y - frame.px(16)) / 3);
  for (const Curve& curve : curves) draw_chart(result, curve, state, frame, height);
}

}  // namespace shard::view
