// Each collective bounds the shift from below and from above; bounds reach further moments, less tight by the drift.
#include "traces/import/align.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "traces/profile.h"

namespace shard {
namespace {

/// No recording goes beyond: sums of a few stay within 64 bits.
constexpr std::int64_t kFarthest = std::int64_t{1} << 60;

/// Which collective it was: its op, or its kind and how many of it there were before in the step; then the step.
using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

/// All ranks of a recording in one collective.
struct Meeting {
  struct Stay {
    std::int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
  };
  std::map<Rank, Stay> stays;

  [[nodiscard]] std::int64_t last_begin_ns() const {
    std::int64_t last = INT64_MIN;
    for (const auto& [rank, stay] : stays) last = std::max(last, stay.begin_ns);
    return last;
  }
  [[nodiscard]] std::int64_t first_end_ns() const {
    std::int64_t first = INT64_MAX;
    for (const auto& [rank, stay] : stays) first = std::min(first, stay.end_ns);
    return first;
  }
};

bool holds_all_up(Activity activity) {
  return activity == Activity::all_gather || activity == Activity::reduce_scatter || activity == Activity::all_reduce ||
         activity == Activity::all_to_all || activity == Activity::barrier;
}

/// In one group of ranks there is one collective of a key.
bool has_groups(const Header& header) {
  return std::ranges::any_of(header.strategy, [](const StrategyField& field) {
    return (field.name == "tensor_parallel" || field.name == "shard_group") && !field.value.empty() &&
           field.value != "0" && field.value != "1";
  });
}

/// Our own traces do not say of each span which collective it is, but which there were.
bool only_holding_up(const Trace& trace) {
  return !trace.collectives.empty() && std::ranges::all_of(trace.collectives, [](const CollectiveTotal& total) {
    return holds_all_up(activity_of(total.kind));
  });
}

struct Meetings {
  std::map<Key, Meeting> found;
  bool certain = true;
};

Meetings meetings_of(const Trace& trace) {
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  std::vector<Activity> kinds(trace.spans.size());
  const bool all_hold_up = only_holding_up(trace);
  bool has_steps = false;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span span = trace.spans[i];
    has_steps = has_steps || span.step > 0;
    const Track& track = trace.track_of(span.track);
    kinds[i] = activity_of(track, span.activity, trace.name_of(span.name));
    if (holds_all_up(kinds[i]) || (kinds[i] == Activity::other_collective && span.op.valid() && all_hold_up))
      order.emplace_back(span.begin_ns, i);
  }
  std::ranges::sort(order);
  Meetings meetings;
  std::map<std::tuple<Rank, std::int32_t, std::int32_t>, std::int32_t> counts;
  for (const auto& [begin, i] : order) {
    const Span span = trace.spans[i];
    const Rank rank = trace.track_of(span.track).rank;
    Key key{span.op.value, span.micro_step, 0, span.step};
    if (!span.op.valid()) {
      if (has_steps && span.step < 0) continue;  // before the first: how many were there is chance
      const std::int32_t kind = -2 - static_cast<std::int32_t>(kinds[i]);
      key = {kind, 0, counts[{rank, kind, span.step}]++, span.step};
      meetings.certain = meetings.certain && has_steps;
    }
    Meeting::Stay& stay = meetings.found[key].stays[rank];  // an op may have several parts
    stay.begin_ns = std::min(stay.begin_ns, std::clamp(begin, -kFarthest, kFarthest));
    stay.end_ns = std::max(stay.end_ns, std::clamp(begin + span.duration_ns, -kFarthest, kFarthest));
  }
  return meetings;
}

/// How many there are of a kind in a step.
std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> groups_of(const Meetings& meetings) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> groups;
  for (const auto& [key, meeting] : meetings.found) ++groups[{std::get<0>(key), std::get<3>(key)}];
  return groups;
}

/// What is known of the shift at a moment.
struct Bound {
  std::int64_t time_ns = 0;
  double low = -static_cast<double>(kFarthest), high = static_cast<double>(kFarthest);
};

void reach_on(std::vector<Bound>& bounds) {
  const auto take = [](Bound& to, const Bound& from) {
    const double loose = kMostDrift * std::abs(static_cast<double>(to.time_ns - from.time_ns));
    to.low = std::max(to.low, from.low - loose);
    to.high = std::min(to.high, from.high + loose);
  };
  for (std::size_t i = 1; i < bounds.size(); ++i) take(bounds[i], bounds[i - 1]);
  for (std::size_t i = bounds.size(); i-- > 1;) take(bounds[i - 1], bounds[i]);
}

/// Begin and end of a recording bound nothing, but are moments of which something is to be said.
void add_ends(const Trace& trace, std::vector<Bound>& bounds) {
  std::int64_t first = bounds.front().time_ns, last = first;
  const auto take = [&](std::int64_t from, std::int64_t to) {
    first = std::min(first, std::clamp(from, -kFarthest, kFarthest));
    last = std::max(last, std::clamp(to, -kFarthest, kFarthest));
  };
  for (std::size_t i = 0; i < trace.spans.size(); ++i)
    take(trace.spans.begin_ns[i], trace.spans.begin_ns[i] + trace.spans.duration_ns[i]);
  for (const std::int64_t time : trace.memory.time_ns) take(time, time);
  for (const Counter& counter : trace.counters) take(counter.time_ns, counter.time_ns);
  bounds.push_back({.time_ns = first});
  bounds.push_back({.time_ns = last});
}

/// How far off a shift can be that goes straight between these.
std::int64_t bound_of(const std::vector<Bound>& bounds, const std::vector<ClockShift::Point>& points) {
  double worst = 0, before = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const auto shift = static_cast<double>(points[i].shift_ns);
    const double here = std::max(bounds[i].high - shift, shift - bounds[i].low);
    // Between two moments what is possible bulges by half the drift.
    const double bulge = i == 0 ? 0 : kMostDrift / 2 * static_cast<double>(bounds[i].time_ns - bounds[i - 1].time_ns);
    worst = std::max(worst, std::max(here, before) + bulge);
    before = here;
  }
  return static_cast<std::int64_t>(std::ceil(worst)) + 1;
}

/// The middle of each bound; false where one leaves nothing.
bool settle(const std::vector<Bound>& bounds, std::optional<std::int64_t> by_clock, Alignment& made) {
  std::vector<ClockShift::Point> points;
  made.clock_agrees = by_clock.has_value();
  for (const Bound& bound : bounds) {
    if (bound.low > bound.high) return false;
    points.push_back({bound.time_ns, std::llround((bound.low + bound.high) / 2)});
    if (by_clock) {
      const auto clock = static_cast<double>(*by_clock);
      made.clock_agrees = made.clock_agrees && bound.low <= clock && clock <= bound.high;
    }
  }
  if (made.clock_agrees)
    for (ClockShift::Point& point : points) point.shift_ns = *by_clock;
  made.bound_ns = bound_of(bounds, points);
  made.shift = ClockShift(std::move(points));
  return true;
}

}  // namespace

std::int64_t ClockShift::moved(std::int64_t time_ns) const {
  const auto behind = std::ranges::upper_bound(points_, time_ns, {}, &Point::time_ns);
  if (behind == points_.begin()) return time_ns + points_.front().shift_ns;
  const Point& a = *std::prev(behind);
  if (behind == points_.end() || behind->time_ns == a.time_ns) return time_ns + a.shift_ns;
  const double part = static_cast<double>(time_ns - a.time_ns) / static_cast<double>(behind->time_ns - a.time_ns);
  return time_ns + a.shift_ns + std::llround(part * static_cast<double>(behind->shift_ns - a.shift_ns));
}

std::optional<Alignment> align_by_collectives(const Trace& axis, const Trace& other,
                                              std::optional<std::int64_t> by_clock, std::string& why) {
  if (has_groups(axis.header) || has_groups(other.header)) {
    why = "collectives of several groups of ranks do not say";
    return std::nullopt;
  }
  const Meetings there = meetings_of(axis), here = meetings_of(other);
  const auto groups_there = groups_of(there), groups_here = groups_of(here);
  std::vector<Bound> bounds;
  Alignment made;
  made.certain = there.certain && here.certain;
  for (const auto& [key, own] : here.found) {
    const auto at = there.found.find(key);
    if (at == there.found.end()) continue;
    const std::pair group{std::get<0>(key), std::get<3>(key)};
    if (groups_there.at(group) != groups_here.at(group)) continue;
    const auto apart = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a - b); };
    bounds.push_back({.time_ns = own.first_end_ns(), .low = apart(at->second.last_begin_ns(), own.first_end_ns())});
    bounds.push_back({.time_ns = own.last_begin_ns(), .high = apart(at->second.first_end_ns(), own.last_begin_ns())});
    ++made.collectives;
  }
  if (bounds.empty()) {
    why = "no collectives that all ranks wait in are in both recordings";
    return std::nullopt;
  }
  add_ends(other, bounds);
  std::ranges::stable_sort(bounds, {}, &Bound::time_ns);
  reach_on(bounds);
  if (settle(bounds, by_clock, made)) return made;
  why = "its collectives contradict the others': of several groups of ranks, or clocks that were set";
  return std::nullopt;
}

}  // namespace shard
