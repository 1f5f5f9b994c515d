// Chunk search: which chunk size a model should be cut into, by which rule, and why.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/model/parameters.h"
#include "sim/search/curve.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// How a chunk size is chosen; each rule has a header of its own in this folder.
enum class ChunkRule { exact, gemini, gemini_v019, variable };
inline constexpr ChunkRule kChunkRules[] = {ChunkRule::exact, ChunkRule::gemini, ChunkRule::gemini_v019,
                                            ChunkRule::variable};

/// "exact", "gemini", "gemini-v0.1.9", "variable".
[[nodiscard]] const char* to_string(ChunkRule rule);

/// Chunks that a step is forecast with: of one size, or, where `starts` says which parameters begin them, as large as
/// what they hold and found under that size.
struct ChunkCut {
  Elems chunk;
  std::span<const std::size_t> starts{};
};

/// What a simulation expects of chunks.
struct ChunkForecast {
  Bytes peak_device_bytes;
  Seconds step_seconds;
  std::int64_t planned_ops = 0;  ///< what finding out took: ops of all plans that were compiled
};

/// All sizes in elements. What is not set takes the rule's own default.
struct ChunkSearchOptions {
  ChunkRule rule = ChunkRule::exact;
  std::int64_t world_size = 1;
  Elems search_range{32 << 20};    ///< gemini, gemini-v0.1.9; exact's default maximum follows gemini's range
  Elems search_interval{1024};     ///< gemini
  std::int64_t grids = 32;         ///< gemini-v0.1.9
  std::optional<Elems> min_chunk;  ///< default 32Mi; gemini-v0.1.9: its largest kept parameter
  std::optional<Elems> max_chunk;  ///< exact: default the end of gemini's range, rounded up to the world size;
                                   ///< variable: default exact's answer; the peers have no maximum
  bool filter = true;              ///< gemini, gemini-v0.1.9
  Bytes bytes_per_element{4};      ///< only for sizes shown in MiB
  /// Asked for the rules' answers, the asked rule's first, then for the points of the curve, those that waste least
  /// first; once for each layout. Nothing where it cannot be simulated.
  std::function<std::optional<ChunkForecast>(const ChunkCut& cut)> forecast;
  /// Behind the asked rule's answer no forecast is begun with which planned_ops would come to more than this, taking
  /// the next to be as large as the one before; 0: no bound. Counted, so that the result is the same on every machine.
  std::int64_t forecast_ops = 1'000'000;
};

/// A chunk of rule `variable`.
struct VariableChunk {
  Elems elems;
  Elems used;
  std::size_t first_parameter = 0;
  std::size_t parameter_count = 0;
};

/// What one rule chooses, and the layout that is then built of all parameters.
struct RuleAnswer {
  ChunkRule rule = ChunkRule::exact;
  Elems chunk;  ///< variable: the largest chunk
  std::int64_t chunk_count = 0;
  Elems waste;
  Elems gather_working_set;
  /// What the peer's search says of this size: the padding of next-fit over the parameters its filter keeps. exact: the
  /// same formula at its size. Nothing where the formula has no meaning: variable, or a kept parameter is larger.
  std::optional<Elems> reported_waste;
  bool keep_gathered = false;             ///< the model is below the minimum: one chunk, not worth sharding
  std::int64_t filtered_parameters = 0;   ///< left out of the peer's score
  std::int64_t candidates = 0;            ///< sizes that the rule ranges over (variable: 0)
  std::vector<VariableChunk> chunks;      ///< variable only
  std::vector<std::size_t> chunk_starts;  ///< variable only: what layout_variable takes
  std::int64_t module_boundaries = 0;     ///< variable only: cuts at which the module changes
  Elems max_chunk;                        ///< variable only: the maximum that was in force
  Seconds seconds;                        ///< of the search alone: from sizes to the chosen size
  std::optional<ChunkForecast> forecast;  ///< of the layout built; not by choose_chunk
};

struct ForecastCurvePoint {
  CurvePoint point;
  std::optional<ChunkForecast> forecast;
};

struct ChunkSearchResult {
  ChunkRule rule = ChunkRule::exact;
  std::int64_t world_size = 1;
  std::size_t parameter_count = 0;
  Elems total;
  Bytes bytes_per_element{4};
  RuleAnswer answer;                      ///< the asked rule's
  std::vector<Result<RuleAnswer>> rules;  ///< in the order of kChunkRules; an Error where the options rule one out
  /// Every size at which the layout changes (curve.h), ascending, from the smallest to the largest of exact's bounds
  /// and of the answers of exact, gemini and the asked rule; and these answers themselves (gemini-v0.1.9 as it builds
  /// them).
  std::vector<ForecastCurvePoint> curve;
  std::string why;                      ///< why the answer wins, one sentence or two
  std::int64_t forecasts = 0;           ///< layouts that the forecast was asked for
  std::int64_t forecasts_left_out = 0;  ///< layouts that it was not asked for because of forecast_ops
  std::int64_t forecast_ops = 0;        ///< planned_ops of all forecasts
};

/// Searches. The world size, options and parameters are judged as in the rule's own header:
/// Errc::contradiction for options that contradict each other, Errc::malformed for an impossible parameter list.
[[nodiscard]] Result<ChunkSearchResult> search_chunks(const ParameterList& parameters,
                                                      const ChunkSearchOptions& options);

/// The chunk size of the asked rule alone, without curve or comparison: what `--chunk-size search` needs.
[[nodiscard]] Result<RuleAnswer> choose_chunk(const ParameterList& parameters, const ChunkSearchOptions& options);

}  // namespace shard
