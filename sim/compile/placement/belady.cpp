// One sweep over the step.
#include "sim/compile/placement/belady.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace shard::plan {

std::vector<bool> keep_nearest(std::span<const Gap> gaps, std::vector<std::int64_t>& free) {
  std::vector<bool> kept(gaps.size(), true);
  std::vector<std::size_t> order(gaps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return gaps[a].begin < gaps[b].begin; });
  std::set<std::tuple<std::size_t, std::int64_t, std::size_t>> active;  // end, bytes, gap
  std::int64_t taken = 0;
  auto next = order.begin();
  for (std::size_t t = 0; t < free.size(); ++t) {
    while (!active.empty() && std::get<0>(*active.begin()) <= t) {
      taken -= std::get<1>(*active.begin());
      active.erase(active.begin());
    }
    for (; next != order.end() && gaps[*next].begin <= t; ++next) {
      const Gap& gap = gaps[*next];
      if (gap.end <= t) continue;
      active.emplace(gap.end, gap.bytes, *next);
      taken += gap.bytes;
    }
    while (taken > free[t] && !active.empty()) {
      const auto last = std::prev(active.end());
      taken -= std::get<1>(*last);
      kept[std::get<2>(*last)] = false;
      active.erase(last);
    }
  }
  for (std::size_t g = 0; g < gaps.size(); ++g)
    for (std::size_t t = gaps[g].begin; kept[g] && t < gaps[g].end && t < free.size(); ++t) free[t] -= gaps[g].bytes;
  return kept;
}

}  // namespace shard::plan
