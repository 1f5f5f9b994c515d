// Runs the rules, builds what they choose, and compares.
#include "sim/search/chunk_search.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "sim/search/exact.h"
#include "sim/search/explain.h"
#include "sim/search/gemini.h"
#include "sim/search/gemini_v019.h"
#include "sim/search/option_checks.h"
#include "sim/search/outlier_filter.h"
#include "sim/search/variable.h"

namespace shard {
namespace {

constexpr Elems kDefaultMinChunk{32 << 20};

GeminiOptions gemini_options(const ChunkSearchOptions& options) {
  return {options.world_size, options.search_range, options.search_interval,
          options.min_chunk.value_or(kDefaultMinChunk), options.filter};
}

Result<ExactOptions> exact_options(const SearchModel& model, const ChunkSearchOptions& options) {
  ExactOptions exact{options.world_size, options.min_chunk.value_or(kDefaultMinChunk), Elems{0}};
  if (options.max_chunk) {
    exact.max_chunk = *options.max_chunk;
  } else {
    const Result<GeminiRange> range = gemini_range(model.sizes, gemini_options(options));
    if (!range) return range.error();
    exact.max_chunk = round_up(range->last, options.world_size);
  }
  return exact;
}

Result<ExactAnswer> run_exact(const SearchModel& model, const ChunkSearchOptions& options) {
  const Result<ExactOptions> exact = exact_options(model, options);
  if (!exact) return exact.error();
  return search_exact(model, *exact);
}

/// Chunk count, waste and working set of the layout built with the answer's uniform size.
void build_uniform(const SearchModel& model, const ChunkSearchOptions& options, Oversize oversize, RuleAnswer& answer) {
  const CurvePoint point = curve_point(model, options.world_size, answer.chunk, oversize);
  answer.chunk_count = point.chunk_count;
  answer.waste = point.waste;
  answer.gather_working_set = point.gather_working_set;
}

/// The reported waste of a size, where it has one.
std::optional<Elems> peer_score(const SearchModel& model, bool filter, Elems chunk) {
  const std::vector<std::int64_t> kept = filter ? without_outliers(model.sizes) : model.sizes;
  if (*std::max_element(kept.begin(), kept.end()) > chunk.count()) return std::nullopt;
  const NextFit fit(kept, 1, Oversize::exact);
  return Elems{fit.tally(chunk.count()).capacity(chunk.count()) - fit.total()};
}

void build_variable(const SearchModel& model, const ChunkSearchOptions& options, VariableAnswer found,
                    RuleAnswer& answer) {
  GatherWorkingSet working_set(model);
  for (std::size_t index = 0; index < found.chunk_starts.size(); ++index) {
    const std::size_t first = found.chunk_starts[index];
    const std::size_t last = index + 1 < found.chunk_starts.size() ? found.chunk_starts[index + 1] : model.sizes.size();
    Elems used;
    for (std::size_t parameter = first; parameter < last; ++parameter) used += Elems{model.sizes[parameter]};
    const Elems elems = round_up(used, options.world_size);
    working_set.add_chunk(first, last, elems.count());
    answer.chunks.push_back({elems, used, first, last - first});
  }
  answer.chunk = found.largest_chunk;
  answer.chunk_count = static_cast<std::int64_t>(found.chunk_starts.size());
  answer.waste = found.waste;
  answer.gather_working_set = Elems{working_set.largest()};
  answer.module_boundaries = found.module_boundaries;
  answer.chunk_starts = std::move(found.chunk_starts);
}

using Clock = std::chrono::steady_clock;

/// Runs one rule and builds its layout.
Result<RuleAnswer> run_rule(ChunkRule rule, const SearchModel& model, const ChunkSearchOptions& options) {
  const Clock::time_point start = Clock::now();
  RuleAnswer answer;
  const auto stop = [&] { answer.seconds = Seconds{std::chrono::duration<double>(Clock::now() - start).count()}; };
  answer.rule = rule;
  switch (rule) {
    case ChunkRule::exact: {
      const Result<ExactOptions> exact = exact_options(model, options);
      if (!exact) return exact.error();
      const Result<ExactAnswer> found = search_exact(model, *exact);
      stop();
      if (!found) return found.error();
      const Result<SizeRange> sizes = admissible_sizes(*exact);
      answer.candidates = found->one_chunk ? 1 : (sizes->last - sizes->first).count() / options.world_size + 1;
      answer.chunk = found->chunk;
      answer.keep_gathered = found->one_chunk;
      answer.reported_waste = found->one_chunk ? Elems{0} : peer_score(model, options.filter, found->chunk);
      build_uniform(model, options, Oversize::round_up, answer);
      return answer;
    }
    case ChunkRule::gemini: {
      const Result<GeminiAnswer> found = search_gemini(model.sizes, gemini_options(options));
      stop();
      if (!found) return found.error();
      answer.chunk = found->chunk;
      answer.reported_waste = found->reported_waste;
      answer.keep_gathered = found->keep_gathered;
      answer.filtered_parameters = found->filtered_parameters;
      answer.candidates = found->candidates;
      build_uniform(model, options, Oversize::round_up, answer);
      return answer;
    }
    case ChunkRule::gemini_v019: {
      const Result<GeminiV019Answer> found =
          search_gemini_v019(model.sizes, {options.search_range, options.grids, options.min_chunk, options.filter});
      stop();
      if (!found) return found.error();
      answer.chunk = found->chunk;
      answer.reported_waste = found->reported_waste;
      answer.filtered_parameters = found->filtered_parameters;
      answer.candidates = found->candidates;
      build_uniform(model, options, Oversize::exact, answer);
      return answer;
    }
    case ChunkRule::variable: {
      VariableOptions variable{options.world_size, options.max_chunk.value_or(Elems{0})};
      if (!options.max_chunk) {
        const Result<ExactAnswer> exact = run_exact(model, options);
        if (!exact) return exact.error();
        variable.max_chunk = exact->chunk;
      }
      Result<VariableAnswer> found = search_variable(model, variable);
      stop();
      if (!found) return found.error();
      answer.keep_gathered =
          model.total < options.min_chunk.value_or(kDefaultMinChunk).count() && found->chunk_starts.size() == 1;
      answer.max_chunk = variable.max_chunk;
      build_variable(model, options, std::move(*found), answer);
      return answer;
    }
  }
  return Error{Errc::internal, "unknown chunk rule", "", ""};
}

/// Adds a rule's uniform answer, unless the curve has that size.
void add_answer(std::vector<CurvePoint>& curve, const SearchModel& model, std::int64_t world_size,
                const RuleAnswer& answer) {
  const auto at = std::lower_bound(curve.begin(), curve.end(), answer.chunk,
                                   [](const CurvePoint& point, Elems chunk) { return point.chunk < chunk; });
  if (at != curve.end() && at->chunk == answer.chunk) return;
  const Oversize oversize = answer.rule == ChunkRule::gemini_v019 ? Oversize::exact : Oversize::round_up;
  curve.insert(at, curve_point(model, world_size, answer.chunk, oversize));
}

std::vector<ForecastCurvePoint> make_curve(const SearchModel& model, const ChunkSearchOptions& options,
                                           const ChunkSearchResult& result) {
  std::vector<const RuleAnswer*> shown;
  for (const Result<RuleAnswer>& answer : result.rules) {
    if (!answer || answer->rule == ChunkRule::variable) continue;
    if (answer->rule == ChunkRule::gemini_v019 && answer->rule != options.rule) continue;
    shown.push_back(&*answer);
  }
  std::optional<SizeRange> span;
  const auto widen = [&](Elems first, Elems last) {
    span = span ? SizeRange{std::min(span->first, first), std::max(span->last, last)} : SizeRange{first, last};
  };
  const Result<ExactOptions> exact = exact_options(model, options);
  if (exact && model.total >= exact->min_chunk.count()) {
    if (const Result<SizeRange> sizes = admissible_sizes(*exact)) widen(sizes->first, sizes->last);
  }
  for (const RuleAnswer* answer : shown) {
    const Elems aligned = round_up(answer->chunk, options.world_size);
    widen(aligned, aligned);
  }

  std::vector<CurvePoint> points;
  if (span) points = chunk_curve(model, options.world_size, span->first, span->last);
  for (const RuleAnswer* answer : shown) add_answer(points, model, options.world_size, *answer);
  std::vector<ForecastCurvePoint> curve;
  curve.reserve(points.size());
  for (const CurvePoint& point : points) curve.push_back({point, std::nullopt});
  return curve;
}

/// Asks for forecasts as long as ChunkSearchOptions::forecast_ops lasts.
class Forecasts {
 public:
  Forecasts(const ChunkSearchOptions& options, ChunkSearchResult& result) : options_(options), result_(result) {}

  /// Of the asked rule's answer whatever it takes: `first`.
  std::optional<ChunkForecast> of(const ChunkCut& cut, bool first = false) {
    const bool uniform = cut.starts.empty();
    if (const auto known = known_.find(cut.chunk); uniform && known != known_.end()) return known->second;
    if (!first && options_.forecast_ops > 0 && result_.forecast_ops + last_ > options_.forecast_ops) {
      ++result_.forecasts_left_out;
      if (uniform) known_.emplace(cut.chunk, std::nullopt);
      return std::nullopt;
    }
    ++result_.forecasts;
    const std::optional<ChunkForecast> forecast = options_.forecast(cut);
    if (forecast) {
      last_ = forecast->planned_ops;
      result_.forecast_ops += last_;
    }
    if (uniform) known_.emplace(cut.chunk, forecast);
    return forecast;
  }

 private:
  const ChunkSearchOptions& options_;
  ChunkSearchResult& result_;
  std::map<Elems, std::optional<ChunkForecast>> known_;
  std::int64_t last_ = 0;
};

/// What chunks of a rule's layout are cut by; nothing where no plan can have them: v0.1.9's oversize chunks are not
/// rounded up.
std::optional<ChunkCut> cut_of(const RuleAnswer& answer, const SearchModel& model, const ChunkSearchOptions& options) {
  if (answer.rule == ChunkRule::variable) return ChunkCut{.chunk = answer.max_chunk, .starts = answer.chunk_starts};
  if (curve_point(model, options.world_size, answer.chunk).waste != answer.waste) return std::nullopt;
  return ChunkCut{.chunk = answer.chunk};
}

void add_forecasts(const SearchModel& model, const ChunkSearchOptions& options, ChunkSearchResult& result) {
  if (!options.forecast) return;
  Forecasts forecasts(options, result);
  const auto add = [&](RuleAnswer& answer, bool first) {
    if (const std::optional<ChunkCut> cut = cut_of(answer, model, options)) answer.forecast = forecasts.of(*cut, first);
  };
  add(result.answer, true);
  for (Result<RuleAnswer>& each : result.rules) {
    if (!each) continue;
    if (each->rule == options.rule)
      each->forecast = result.answer.forecast;
    else
      add(*each, false);
  }
  std::vector<ForecastCurvePoint*> points;
  for (ForecastCurvePoint& at : result.curve) points.push_back(&at);
  std::ranges::stable_sort(points, {}, [](const ForecastCurvePoint* at) { return at->point.waste; });
  for (ForecastCurvePoint* at : points) at->forecast = forecasts.of({.chunk = at->point.chunk});
}

}  // namespace

const char* to_string(ChunkRule rule) {
  switch (rule) {
    case ChunkRule::exact: return "exact";
    case ChunkRule::gemini: return "gemini";
    case ChunkRule::gemini_v019: return "gemini-v0.1.9";
    case ChunkRule::variable: return "variable";
  }
  return "?";
}

Result<RuleAnswer> choose_chunk(const ParameterList& parameters, const ChunkSearchOptions& options) {
  const Result<SearchModel> model = make_search_model(parameters);
  if (!model) return model.error();
  if (auto error = check_world_size(options.world_size)) return *error;
  return run_rule(options.rule, *model, options);
}

Result<ChunkSearchResult> search_chunks(const ParameterList& parameters, const ChunkSearchOptions& options) {
  const Result<SearchModel> model = make_search_model(parameters);
  if (!model) return model.error();
  if (auto error = check_world_size(options.world_size)) return *error;

  ChunkSearchResult result;
  result.rule = options.rule;
  result.world_size = options.world_size;
  result.parameter_count = parameters.size();
  result.total = Elems{model->total};
  result.bytes_per_element = options.bytes_per_element;
  Result<RuleAnswer> answer = run_rule(options.rule, *model, options);
  if (!answer) return answer.error();
  for (const ChunkRule rule : kChunkRules) {
    result.rules.push_back(rule == options.rule ? answer : run_rule(rule, *model, options));
  }
  result.answer = std::move(*answer);
  result.curve = make_curve(*model, options, result);
  add_forecasts(*model, options, result);
  result.why = explain(result);
  return result;
}

}  // namespace shard
