// The grid of search_chunk_size, scored by branch and bound.
#include "sim/search/gemini_v019.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/chunk/next_fit.h"
#include "sim/search/least_capacity.h"
#include "sim/search/option_checks.h"
#include "sim/search/outlier_filter.h"

namespace shard {

Result<GeminiV019Answer> search_gemini_v019(std::span<const std::int64_t> sizes, const GeminiV019Options& options) {
  if (auto error = check_elems("--search-range", options.range, 1)) return *error;
  if (auto error = check_elems("--grids", Elems{options.grids}, 1)) return *error;
  const std::int64_t range = options.range.count();
  if (range % options.grids != 0) {
    return Error{Errc::contradiction,
                 "--search-range " + std::to_string(range) + " is not divisible by --grids " +
                     std::to_string(options.grids) + ", which rule gemini-v0.1.9 needs",
                 "", "--search-range " + std::to_string(round_up(options.range, options.grids).count())};
  }
  std::vector<std::int64_t> kept =
      options.filter ? without_outliers(sizes) : std::vector<std::int64_t>(sizes.begin(), sizes.end());
  const std::int64_t largest = *std::max_element(kept.begin(), kept.end());
  std::int64_t lowest = largest;
  if (options.min_chunk) {
    if (auto error = check_elems("--min-chunk", *options.min_chunk, 0)) return *error;
    lowest = options.min_chunk->count();
    if (lowest < largest) {
      return Error{Errc::contradiction,
                   "--min-chunk " + std::to_string(lowest) + " is below the largest parameter that --rule " +
                       "gemini-v0.1.9 keeps, " + std::to_string(largest) + " elements",
                   "", "--min-chunk " + std::to_string(largest) + ", or leave --min-chunk out"};
    }
  }

  GeminiV019Answer answer;
  answer.filtered_parameters = static_cast<std::int64_t>(sizes.size() - kept.size());
  answer.candidates = options.grids + 1;
  const NextFit fit(std::move(kept), 1, Oversize::exact);
  const SizeGrid grid{lowest, range / options.grids, answer.candidates};
  const LeastCapacity best = least_capacity(fit, grid);  // the best utilisation
  answer.reported_waste = Elems{best.capacity - fit.total()};
  answer.chunk = Elems{best.sizes.front()};
  return answer;
}

}  // namespace shard
