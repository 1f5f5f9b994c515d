// Sets of moments: sorted once, a sum over a window is the difference of two prefix sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace shard {

/// A stretch of time.
struct Interval {
  std::int64_t begin = 0, end = 0;
};

/// A set of moments: disjoint intervals in order, and how long those before each are together.
class Moments {
 public:
  Moments() = default;
  explicit Moments(std::vector<Interval> intervals) {
    std::ranges::sort(intervals, {}, &Interval::begin);
    for (const Interval& each : intervals) {
      if (each.end <= each.begin) continue;
      if (!joined_.empty() && each.begin <= joined_.back().end) {
        joined_.back().end = std::max(joined_.back().end, each.end);
      } else {
        joined_.push_back(each);
      }
    }
    before_.reserve(joined_.size() + 1);
    for (const Interval& each : joined_) before_.push_back(before_.back() + each.end - each.begin);
  }
  /// How much of it lies before a time.
  [[nodiscard]] std::int64_t until(std::int64_t time) const {
    const auto after = std::ranges::upper_bound(joined_, time, {}, &Interval::begin);
    if (after == joined_.begin()) return 0;
    const auto at = static_cast<std::size_t>(after - joined_.begin()) - 1;
    return before_[at] + std::min(time, joined_[at].end) - joined_[at].begin;
  }
  [[nodiscard]] std::int64_t within(std::int64_t begin, std::int64_t end) const { return until(end) - until(begin); }
  [[nodiscard]] const std::vector<Interval>& intervals() const { return joined_; }
  [[nodiscard]] bool empty() const { return joined_.empty(); }

 private:
  std::vector<Interval> joined_;
  std::vector<std::int64_t> before_{0};
};

/// What is in both.
[[nodiscard]] inline Moments both(const Moments& a, const Moments& b) {
  std::vector<Interval> common;
  auto x = a.intervals().begin(), y = b.intervals().begin();
  while (x != a.intervals().end() && y != b.intervals().end()) {
    const std::int64_t begin = std::max(x->begin, y->begin), end = std::min(x->end, y->end);
    if (begin < end) common.push_back({begin, end});
    if (x->end < y->end) {
      ++x;
    } else {
      ++y;
    }
  }
  return Moments(std::move(common));
}

}  // namespace shard
