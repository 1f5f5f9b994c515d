// The branch and bound.
#include "sim/search/least_capacity.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shard {
namespace {

/// Indices of two sizes, their tallies known, between which something may be better.
struct Interval {
  std::int64_t low;
  std::int64_t high;
  NextFitTally at_low;
  NextFitTally at_high;
};

class Search {
 public:
  Search(const NextFit& fit, const SizeGrid& grid) : fit_(fit), grid_(grid) {
    least_.capacity = std::numeric_limits<std::int64_t>::max();
  }

  LeastCapacity run() {
    const NextFitTally first = tally(0);
    if (grid_.count > 1) push({0, grid_.count - 1, first, tally(grid_.count - 1)});
    while (!open_.empty()) {
      const Interval interval = open_.back();
      open_.pop_back();
      if (bound(interval) > least_.capacity) continue;  // pruned by something found since
      const std::int64_t middle = interval.low + (interval.high - interval.low) / 2;
      const NextFitTally at_middle = tally(middle);
      const Interval left{interval.low, middle, interval.at_low, at_middle};
      const Interval right{middle, interval.high, at_middle, interval.at_high};
      // The more promising half is looked at first, to have a good bound early.
      const bool left_first = bound(left) <= bound(right);
      push(left_first ? right : left);
      push(left_first ? left : right);
    }
    std::sort(least_.sizes.begin(), least_.sizes.end());
    return std::move(least_);
  }

 private:
  NextFitTally tally(std::int64_t index) {
    const std::int64_t size = grid_.at(index);
    const NextFitTally tally = fit_.tally(size);
    ++least_.tallies;
    const std::int64_t capacity = tally.capacity(size);
    if (capacity < least_.capacity) least_.sizes.clear();
    if (capacity <= least_.capacity) {
      least_.capacity = capacity;
      least_.sizes.push_back(size);
    }
    return tally;
  }

  [[nodiscard]] std::int64_t bound(const Interval& interval) const {
    return interval.at_high.capacity(grid_.at(interval.low + 1));
  }

  void push(const Interval& interval) {
    if (interval.high - interval.low < 2 || interval.at_low == interval.at_high) return;
    if (bound(interval) <= least_.capacity) open_.push_back(interval);
  }

  const NextFit& fit_;
  const SizeGrid& grid_;
  LeastCapacity least_;
  std::vector<Interval> open_;
};

}  // namespace

LeastCapacity least_capacity(const NextFit& fit, const SizeGrid& grid) {
  return Search(fit, grid).run();
}

}  // namespace shard
