// Values over time: per pixel column the highest, the lowest and the last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/reader.h"
#include "viewer/index/extremes.h"
#include "viewer/index/viewport.h"

namespace shard::view {

struct ValueColumn {
  bool any = false;  ///< false before the first sample
  double highest = 0, lowest = 0, last = 0;
};

/// A value that holds from each sample to the next: a step function over time, by time.
class StepCurve {
 public:
  StepCurve() = default;
  /// Times never fall; of several values at one time the last holds, the others count as extremes.
  StepCurve(std::vector<std::int64_t> times_ns, std::vector<double> values);

  [[nodiscard]] std::size_t size() const { return times_.size(); }
  [[nodiscard]] const std::vector<std::int64_t>& times_ns() const { return times_; }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }
  /// The value that holds at a time; none before the first sample.
  [[nodiscard]] std::optional<double> at(std::int64_t time_ns) const;
  /// The position of the highest and the lowest value; the curve must not be empty.
  [[nodiscard]] std::size_t highest() const;
  [[nodiscard]] std::size_t lowest() const;
  /// One entry per column into `out` (replaced); a column includes the value that holds at its begin.
  void columns(const PixelRange& view, std::vector<ValueColumn>& out) const;

 private:
  std::vector<std::int64_t> times_;
  std::vector<double> values_;
  Extremes<double> extremes_;
};

struct CounterSeries {
  Rank rank{};
  NameId name{};
  StepCurve curve;
};

/// The counters of a trace, by rank and name; samples that are not numbers are left out.
[[nodiscard]] std::vector<CounterSeries> counter_series(const Trace& trace);

}  // namespace shard::view
