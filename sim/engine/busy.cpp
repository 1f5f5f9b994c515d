// Sorting and merging.
#include "sim/engine/busy.h"

#include <algorithm>
#include <utility>

namespace shard::engine {

Busy::Busy(std::vector<Interval> intervals) {
  // Those of one stream come in order.
  if (!std::ranges::is_sorted(intervals, {}, &Interval::begin)) std::ranges::sort(intervals, {}, &Interval::begin);
  for (const Interval& i : intervals) {
    if (!parts_.empty() && i.begin <= parts_.back().end) {
      parts_.back().end = std::max(parts_.back().end, i.end);
    } else {
      parts_.push_back(i);
    }
  }
}

Seconds Busy::length() const {
  Seconds total;
  for (const Interval& i : parts_) total += i.length();
  return total;
}

Busy Busy::within(Interval window) const {
  Busy result;
  auto part = std::ranges::partition_point(parts_, [&](const Interval& i) { return i.end <= window.begin; });
  for (; part != parts_.end() && part->begin < window.end; ++part)
    result.parts_.push_back({std::max(part->begin, window.begin), std::min(part->end, window.end)});
  return result;
}

Seconds Busy::length_outside(const Busy& other) const {
  Seconds covered;
  std::size_t j = 0;
  for (const Interval& i : parts_) {
    while (j < other.parts_.size() && other.parts_[j].end <= i.begin) ++j;
    for (std::size_t k = j; k < other.parts_.size() && other.parts_[k].begin < i.end; ++k) {
      covered += std::min(i.end, other.parts_[k].end) - std::max(i.begin, other.parts_[k].begin);
    }
  }
  return length() - covered;
}

}  // namespace shard::engine
