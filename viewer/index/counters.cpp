// Samples sorted by time, extremes by position.
#include "viewer/index/counters.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <utility>

namespace shard::view {

StepCurve::StepCurve(std::vector<std::int64_t> times_ns, std::vector<double> values)
    : times_(std::move(times_ns)), values_(std::move(values)), extremes_(values_) {
  assert(times_.size() == values_.size());
}

std::optional<double> StepCurve::at(std::int64_t time_ns) const {
  const auto after = std::upper_bound(times_.begin(), times_.end(), time_ns);
  if (after == times_.begin()) return std::nullopt;
  return values_[static_cast<std::size_t>(after - times_.begin() - 1)];
}

std::size_t StepCurve::highest() const {
  return extremes_.highest(values_, 0, values_.size());
}

std::size_t StepCurve::lowest() const {
  return extremes_.lowest(values_, 0, values_.size());
}

void StepCurve::columns(const PixelRange& view, std::vector<ValueColumn>& out) const {
  out.assign(static_cast<std::size_t>(view.width), {});
  const auto before = [&](std::int64_t time_ns) {
    return static_cast<std::size_t>(std::lower_bound(times_.begin(), times_.end(), time_ns) - times_.begin());
  };
  for (std::int32_t c = 0; c < view.width; ++c) {
    std::size_t first = before(view.begin(c));
    const std::size_t last = before(view.end(c));
    if (first > 0) --first;  // what the column begins with
    if (first == last) continue;
    ValueColumn& column = out[static_cast<std::size_t>(c)];
    column.any = true;
    column.highest = values_[extremes_.highest(values_, first, last)];
    column.lowest = values_[extremes_.lowest(values_, first, last)];
    column.last = values_[last - 1];
  }
}

std::vector<CounterSeries> counter_series(const Trace& trace) {
  std::map<std::pair<Rank, NameId>, std::vector<std::pair<std::int64_t, double>>> samples;
  for (const Counter& counter : trace.counters) {
    if (!std::isnan(counter.value)) samples[{counter.rank, counter.name}].emplace_back(counter.time_ns, counter.value);
  }
  std::vector<CounterSeries> result;
  for (auto& [key, list] : samples) {
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::int64_t> times;
    std::vector<double> values;
    times.reserve(list.size());
    values.reserve(list.size());
    for (const auto& [time, value] : list) {
      times.push_back(time);
      values.push_back(value);
    }
    result.push_back({key.first, key.second, StepCurve(std::move(times), std::move(values))});
  }
  return result;
}

}  // namespace shard::view
