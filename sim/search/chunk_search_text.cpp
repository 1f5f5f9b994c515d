// Tables and the picture of the curve.
#include "sim/search/chunk_search_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/search/explain.h"
#include "traces/base/numbers.h"
#include "traces/base/text_table.h"

namespace shard {
namespace {

using Row = std::vector<std::string>;

std::string table(std::vector<Row> rows) {
  TextTable text(std::move(rows.front()), 1);
  for (std::size_t i = 1; i < rows.size(); ++i) text.add(std::move(rows[i]));
  return text.str();
}

std::string milliseconds(Seconds seconds) {
  return show_fixed(seconds.count() * 1e3, 3) + " ms";
}

Row row_of(const ChunkSearchResult& result, std::string name, std::int64_t count, Elems chunk, Elems waste,
           Elems working_set) {
  const Bytes each = result.bytes_per_element;
  return {std::move(name),          with_commas(chunk.count()), in_mib(chunk, each),
          with_commas(count),       with_commas(waste.count()), percent(waste, result.total),
          in_mib(working_set, each)};
}

/// Columns of what a step takes, where it was simulated.
void add_forecast(Row& row, const std::optional<ChunkForecast>& forecast) {
  row.push_back(forecast ? in_mib(Elems{forecast->peak_device_bytes.count()}, Bytes{1}) : "-");
  row.push_back(forecast ? milliseconds(forecast->step_seconds) : "-");
}

std::string rules_table(const ChunkSearchResult& result) {
  std::vector<Row> rows{
      {"rule", "chunk elements", "chunk size", "chunks", "waste elements", "waste", "gather set", "reported waste"}};
  const bool forecast =
      std::any_of(result.rules.begin(), result.rules.end(), [](const auto& each) { return each && each->forecast; });
  if (forecast) rows.front().insert(rows.front().end(), {"peak memory", "step"});
  std::string refused;
  for (std::size_t index = 0; index < result.rules.size(); ++index) {
    const Result<RuleAnswer>& answer = result.rules[index];
    const ChunkRule rule = kChunkRules[index];
    const std::string name = std::string(rule == result.rule ? "* " : "  ") + to_string(rule);
    if (answer) {
      rows.push_back(
          row_of(result, name, answer->chunk_count, answer->chunk, answer->waste, answer->gather_working_set));
      rows.back().push_back(answer->reported_waste ? with_commas(answer->reported_waste->count()) : "-");
      if (forecast) add_forecast(rows.back(), answer->forecast);
    } else {
      refused += name + ": " + answer.error().what + "\n";
    }
  }
  return table(std::move(rows)) + refused +
         "waste: padding of the layout built; gather set: all chunks that one module touches, at most; reported "
         "waste:\n"
         "the waste that Colossal-AI's own search reports for the size\n";
}

/// Waste at a size between two points of the curve: the partition of the point before holds.
Elems waste_at(const CurvePoint& before, Elems chunk) {
  return before.waste + before.uniform_chunks * (chunk - before.chunk);
}

/// Least waste of any size within each of `columns` equal parts of the curve's span.
std::vector<Elems> least_by_column(const std::vector<ForecastCurvePoint>& curve, std::size_t columns) {
  const std::int64_t first = curve.front().point.chunk.count();
  const std::int64_t span = curve.back().point.chunk.count() - first;
  std::vector<Elems> least;
  std::size_t next = 0;  // first point not before the column
  for (std::size_t column = 0; column < columns; ++column) {
    const auto edge = [&](std::size_t at) {
      return Elems{first + static_cast<std::int64_t>(static_cast<double>(span) * static_cast<double>(at) /
                                                     static_cast<double>(columns))};
    };
    while (next < curve.size() && curve[next].point.chunk <= edge(column)) ++next;
    Elems best = waste_at(curve[next - 1].point, edge(column));
    for (; next < curve.size() && (curve[next].point.chunk < edge(column + 1) || column + 1 == columns); ++next) {
      best = std::min(best, curve[next].point.waste);
    }
    least.push_back(best);
  }
  return least;
}

std::string picture(const ChunkSearchResult& result, bool unicode) {
  if (result.curve.size() < 3) return "";
  constexpr std::size_t kColumns = 64;
  constexpr std::int64_t kRows = 6;
  constexpr std::array<const char*, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::vector<Elems> least = least_by_column(result.curve, kColumns);
  const double top =
      static_cast<double>(std::max(std::int64_t{1}, std::max_element(least.begin(), least.end())->count()));

  std::string text =
      "\nleast waste (up to " + with_commas(static_cast<std::int64_t>(top)) + " elements) by chunk size\n";
  for (std::int64_t row = kRows - 1; row >= 0; --row) {
    std::string line = "  |";
    for (const Elems waste : least) {
      const auto eighths = static_cast<std::int64_t>(static_cast<double>(waste.count()) / top * 8 * kRows + 0.5);
      const std::int64_t filled = std::clamp(eighths - row * 8, std::int64_t{0}, std::int64_t{8});
      line += unicode ? kBlocks[static_cast<std::size_t>(filled)] : filled >= 4 ? "#" : " ";
    }
    text += line + "\n";
  }

  const Elems first = result.curve.front().point.chunk;
  const Elems last = result.curve.back().point.chunk;
  std::string marks(kColumns, ' ');
  const auto mark = [&](Elems chunk, char letter) {
    const double part = static_cast<double>((chunk - first).count()) / static_cast<double>((last - first).count());
    marks[std::min(kColumns - 1, static_cast<std::size_t>(part * static_cast<double>(kColumns)))] = letter;
  };
  for (const Result<RuleAnswer>& answer : result.rules) {
    if (!answer || answer->chunk < first || answer->chunk > last) continue;
    if (answer->rule == ChunkRule::gemini) mark(answer->chunk, 'g');
    if (answer->rule == ChunkRule::exact) mark(answer->chunk, 'e');
  }
  if (result.rule != ChunkRule::variable) mark(result.answer.chunk, '^');
  const std::string left = in_mib(first, result.bytes_per_element);
  const std::string right = in_mib(last, result.bytes_per_element);
  text += "  +" + std::string(kColumns, '-') + "\n   " + marks + "\n   " + left +
          std::string(kColumns > left.size() + right.size() ? kColumns - left.size() - right.size() : 1, ' ') + right +
          "\n   " + (result.rule == ChunkRule::variable ? "" : "^ the answer, ") + "e exact, g gemini" +
          (result.rule == ChunkRule::variable ? "; chunks of different sizes are no point of this curve\n" : "\n");
  return text;
}

/// The sizes of least waste, ascending by size: the valleys of the picture.
std::string best_points(const ChunkSearchResult& result) {
  constexpr std::size_t kShown = 8;
  std::vector<ForecastCurvePoint> points = result.curve;
  std::stable_sort(points.begin(), points.end(), [](const ForecastCurvePoint& a, const ForecastCurvePoint& b) {
    return a.point.waste < b.point.waste;
  });
  points.resize(std::min(points.size(), kShown));
  std::sort(points.begin(), points.end(),
            [](const ForecastCurvePoint& a, const ForecastCurvePoint& b) { return a.point.chunk < b.point.chunk; });
  const bool forecast =
      std::any_of(points.begin(), points.end(), [](const ForecastCurvePoint& at) { return at.forecast.has_value(); });
  std::vector<Row> rows{{"size", "chunk elements", "chunk size", "chunks", "waste elements", "waste", "gather set"}};
  if (forecast) rows.front().insert(rows.front().end(), {"peak memory", "step"});
  for (const ForecastCurvePoint& at : points) {
    const CurvePoint& point = at.point;
    const bool winner = result.rule != ChunkRule::variable && point.chunk == result.answer.chunk;
    rows.push_back(
        row_of(result, winner ? "*" : "", point.chunk_count, point.chunk, point.waste, point.gather_working_set));
    if (forecast) add_forecast(rows.back(), at.forecast);
  }
  return "\nthe " + std::to_string(points.size()) + " least wasteful of the " + std::to_string(result.curve.size()) +
         " sizes of the curve (all with --json)\n" + table(rows);
}

/// A forecast that is not there is not one that cannot be made.
std::string left_out(const ChunkSearchResult& result) {
  if (result.forecasts_left_out == 0) return "";
  return "\npeak memory and step of " + with_commas(result.forecasts_left_out) + " of " +
         with_commas(result.forecasts + result.forecasts_left_out) + " layouts are left out: planning " +
         with_commas(result.forecasts) + " took " + with_commas(result.forecast_ops) +
         " ops (--forecast-ops 0 plans all)\n";
}

}  // namespace

std::string to_text(const ChunkSearchResult& result, bool unicode) {
  const RuleAnswer& answer = result.answer;
  const Bytes each = result.bytes_per_element;
  std::string text = with_commas(static_cast<std::int64_t>(result.parameter_count)) + " tensors of parameters, " +
                     with_commas(result.total.count()) + " elements (" + in_mib(result.total, each) + "), world size " +
                     std::to_string(result.world_size) + "; MiB at " + std::to_string(each.count()) +
                     (each.count() == 1 ? " byte" : " bytes") + " per element\n";
  text += std::string(answer.rule == ChunkRule::variable ? "largest chunk " : "chunk size ") +
          with_commas(answer.chunk.count()) + " elements (" + in_mib(answer.chunk, each) + ") by rule " +
          to_string(answer.rule) + ", found in " + milliseconds(result.answer.seconds) + "\n\n";
  text += rules_table(result);
  text += picture(result, unicode);
  text += best_points(result);
  return text + left_out(result) + "\n" + result.why + "\n";
}

}  // namespace shard
