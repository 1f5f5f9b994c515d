// The candidates of search_chunk_configuration, scored by branch and bound.
#include "sim/search/gemini.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/chunk/next_fit.h"
#include "sim/search/least_capacity.h"
#include "sim/search/option_checks.h"
#include "sim/search/outlier_filter.h"

namespace shard {
namespace {

std::optional<Error> check(const GeminiOptions& options) {
  if (auto error = check_world_size(options.world_size)) return error;
  if (auto error = check_elems("--search-range", options.range, 0)) return error;
  if (auto error = check_elems("--search-interval", options.interval, 1)) return error;
  return check_elems("--min-chunk", options.min_chunk, 0);
}

GeminiRange range_of(const std::vector<std::int64_t>& kept, const GeminiOptions& options) {
  const Elems largest{*std::max_element(kept.begin(), kept.end())};
  const Elems first = round_up(std::max(largest, options.min_chunk), options.interval.count());
  return {first, first + options.range};
}

std::vector<std::int64_t> kept_sizes(std::span<const std::int64_t> sizes, bool filter) {
  return filter ? without_outliers(sizes) : std::vector<std::int64_t>(sizes.begin(), sizes.end());
}

}  // namespace

Result<GeminiRange> gemini_range(std::span<const std::int64_t> sizes, const GeminiOptions& options) {
  if (auto error = check(options)) return *error;
  return range_of(kept_sizes(sizes, options.filter), options);
}

Result<GeminiAnswer> search_gemini(std::span<const std::int64_t> sizes, const GeminiOptions& options) {
  if (auto error = check(options)) return *error;
  GeminiAnswer answer;
  answer.candidates = options.range.count() / options.interval.count() + 1;

  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (total < options.min_chunk.count()) {
    answer.chunk = Elems{total};
    answer.keep_gathered = true;
    return answer;
  }

  std::vector<std::int64_t> kept = kept_sizes(sizes, options.filter);
  answer.filtered_parameters = static_cast<std::int64_t>(sizes.size() - kept.size());
  const GeminiRange range = range_of(kept, options);

  // No kept parameter is larger than a candidate, so world size and oversize rule have no part in the score.
  const NextFit fit(std::move(kept), 1, Oversize::exact);
  const SizeGrid grid{range.first.count(), options.interval.count(), answer.candidates};
  const LeastCapacity best = least_capacity(fit, grid);
  answer.reported_waste = Elems{best.capacity - fit.total()};
  answer.chunk = round_up(Elems{best.sizes.front()}, options.world_size);
  return answer;
}

}  // namespace shard
