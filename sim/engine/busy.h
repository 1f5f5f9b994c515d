// How long something was going on: unions of intervals, and what of them nothing else covers.
#pragma once

#include <vector>

#include "sim/engine/timeline.h"

namespace shard::engine {

/// A set of moments, as sorted disjoint intervals.
class Busy {
 public:
  Busy() = default;
  explicit Busy(std::vector<Interval> intervals);
  [[nodiscard]] Seconds length() const;
  /// The part of this within the interval.
  [[nodiscard]] Busy within(Interval window) const;
  /// The part of this that `other` does not cover.
  [[nodiscard]] Seconds length_outside(const Busy& other) const;

 private:
  std::vector<Interval> parts_;
};

}  // namespace shard::engine
