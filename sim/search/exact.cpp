// Compares the few sizes that can win.
#include "sim/search/exact.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "sim/chunk/next_fit.h"
#include "sim/search/least_capacity.h"
#include "sim/search/option_checks.h"

namespace shard {

Result<SizeRange> admissible_sizes(const ExactOptions& options) {
  if (auto error = check_world_size(options.world_size)) return *error;
  if (auto error = check_elems("--min-chunk", options.min_chunk, 0)) return *error;
  if (auto error = check_elems("--max-chunk", options.max_chunk, 1)) return *error;
  const std::string minimum = std::to_string(options.min_chunk.count());
  const std::string maximum = std::to_string(options.max_chunk.count());
  if (options.min_chunk > options.max_chunk) {
    return Error{Errc::contradiction, "--min-chunk " + minimum + " is above --max-chunk " + maximum, "",
                 "--min-chunk " + maximum + " or --max-chunk " + minimum};
  }
  const SizeRange range{round_up(std::max(options.min_chunk, Elems{1}), options.world_size),
                        Elems{options.max_chunk.count() / options.world_size * options.world_size}};
  if (range.first > range.last) {
    return Error{Errc::contradiction,
                 "no multiple of --world-size " + std::to_string(options.world_size) + " lies between --min-chunk " +
                     minimum + " and --max-chunk " + maximum,
                 "", "--max-chunk " + std::to_string(range.first.count())};
  }
  return range;
}

Result<ExactAnswer> search_exact(const SearchModel& model, const ExactOptions& options) {
  const Result<SizeRange> range = admissible_sizes(options);
  if (!range) return range.error();
  if (model.total < options.min_chunk.count()) {
    return ExactAnswer{round_up(Elems{model.total}, options.world_size), true, 1};
  }

  const NextFit fit(model.sizes, options.world_size, Oversize::round_up);
  const SizeGrid grid{range->first.count(), options.world_size,
                      (range->last.count() - range->first.count()) / options.world_size + 1};
  const LeastCapacity best = least_capacity(fit, grid);
  ExactAnswer answer{Elems{best.sizes.front()}, false, best.tallies};
  if (best.sizes.size() > 1) {
    std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t chunk : best.sizes) {
      const std::int64_t working_set = gather_working_set(model, fit, chunk);
      if (working_set >= smallest) continue;
      smallest = working_set;
      answer.chunk = Elems{chunk};
    }
  }
  return answer;
}

}  // namespace shard
