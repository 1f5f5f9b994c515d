// Events of paired steps are joined one by one; a longest rising subsequence decides which of two orders is kept.
#include "traces/memory_by_op.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "traces/base/rising.h"
#include "traces/base/wrapping.h"

namespace shard {
namespace {

using Events = std::vector<std::uint32_t>;

/// Events of one phase and step, [begin, end) in their list.
struct StepEvents {
  Phase phase = Phase::creation;
  std::size_t begin = 0, end = 0;
};

std::vector<StepEvents> steps_of(const Trace& trace, const Events& events) {
  std::vector<StepEvents> steps;
  for (std::size_t i = 0; i < events.size();) {
    const std::uint32_t head = events[i];
    const std::size_t begin = i;
    while (i < events.size() && trace.memory.phase[events[i]] == trace.memory.phase[head] &&
           trace.memory.step[events[i]] == trace.memory.step[head])
      ++i;
    steps.push_back({trace.memory.phase[head], begin, i});
  }
  return steps;
}

struct StepPair {
  StepEvents first, other;
  bool first_again = false, other_again = false;
};

/// In the other trace's order; what only the first has more of follows.
std::vector<StepPair> paired(const std::vector<StepEvents>& first, const std::vector<StepEvents>& other) {
  std::array<std::vector<StepEvents>, kPhaseCount> of_first, of_other;
  for (const StepEvents& step : first) of_first[static_cast<std::size_t>(step.phase)].push_back(step);
  std::vector<StepPair> pairs;
  for (const StepEvents& step : other) {
    auto& earlier = of_other[static_cast<std::size_t>(step.phase)];
    const auto& candidates = of_first[static_cast<std::size_t>(step.phase)];
    const std::size_t number = earlier.size();
    earlier.push_back(step);
    if (candidates.empty()) continue;
    pairs.push_back({candidates[std::min(number, candidates.size() - 1)], step, number >= candidates.size(), false});
  }
  for (std::size_t phase = 0; phase < of_first.size(); ++phase) {
    if (of_other[phase].empty()) continue;
    for (std::size_t number = of_other[phase].size(); number < of_first[phase].size(); ++number)
      pairs.push_back({of_first[phase][number], of_other[phase].back(), false, true});
  }
  return pairs;
}

/// Live bytes after each event; the first entry is before all.
std::vector<std::int64_t> live_bytes(const Trace& trace, const Events& events) {
  std::vector<std::int64_t> live{0};
  live.reserve(events.size() + 1);
  for (const std::uint32_t event : events) live.push_back(wrapping_sum(live.back(), trace.memory.delta_bytes[event]));
  return live;
}

std::int64_t difference(std::int64_t other, std::int64_t first) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(other) - static_cast<std::uint64_t>(first));
}

std::uint64_t magnitude(std::int64_t bytes) {
  return bytes < 0 ? 0 - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
}

/// The op; the buffer within one plan, else its category; whether it is taken or given back; and the how-manieth such
/// event of the step it is.
using EventKey = std::tuple<std::int64_t, std::int32_t, bool, std::int32_t>;
struct EventKeyHash {
  std::size_t operator()(const EventKey& key) const {
    const auto& [op, buffer, taken, number] = key;
    std::uint64_t hash = static_cast<std::uint64_t>(op) * 0x9e37'79b9'7f4a'7c15u;  // 2^64 / golden ratio
    hash = (hash ^ (hash >> 29) ^ static_cast<std::uint32_t>(buffer)) * 0x9e37'79b9'7f4a'7c15u;
    hash ^= (hash >> 31) + (static_cast<std::uint64_t>(number) << 1) + (taken ? 1 : 0);
    return static_cast<std::size_t>(hash * 0x9e37'79b9'7f4a'7c15u);
  }
};

/// Numbers events that only op and direction would not tell apart.
class Numbering {
 public:
  EventKey next(const EventKey& event) {
    EventKey key = event;
    std::get<3>(key) = count_[event]++;
    return key;
  }

 private:
  std::unordered_map<EventKey, std::int32_t, EventKeyHash> count_;
};

using Matches = std::vector<std::pair<std::size_t, std::size_t>>;  // positions in both lists, both rising

/// The longest part of `matches` (by their first position) whose second positions rise.
Matches in_one_order(const Matches& matches) {
  Matches kept;
  for (const std::size_t at : longest_rising(matches, &Matches::value_type::second)) kept.push_back(matches[at]);
  return kept;
}

/// Joins the steps of one memory.
class Join {
 public:
  Join(const Trace& first, const Events& first_events, const Trace& other, const Events& other_events,
       const SameOps& ops)
      : first_(first), other_(other), first_events_(first_events), other_events_(other_events), ops_(ops) {}

  MemoryByOp run() {
    first_live_ = live_bytes(first_, first_events_);
    other_live_ = live_bytes(other_, other_events_);
    for (const StepPair& pair : paired(steps_of(first_, first_events_), steps_of(other_, other_events_))) join(pair);
    if (result_.same_events == 0) result_.points.clear();
    const auto& points = result_.points;
    const auto differs = [](const MemoryPoint& point) { return point.bytes != 0; };
    result_.begin = static_cast<std::size_t>(std::ranges::find_if(points, differs) - points.begin());
    const auto largest =
        std::ranges::max_element(points, {}, [](const MemoryPoint& point) { return magnitude(point.bytes); });
    result_.largest = static_cast<std::size_t>(largest - points.begin());
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::int64_t op_of_first(std::size_t at) const {
    return ops_.of_first(first_.memory.op[first_events_[at]]);
  }
  [[nodiscard]] std::int64_t op_of_other(std::size_t at) const {
    return ops_.of_other(other_.memory.op[other_events_[at]]);
  }
  [[nodiscard]] EventKey key_of(const MemoryTable& table, std::uint32_t event, std::int64_t op) const {
    const std::int32_t what =
        ops_.by_id() ? table.buffer[event].value : static_cast<std::int32_t>(table.category[event]);
    return {op, what, table.delta_bytes[event] > 0, 0};
  }
  [[nodiscard]] EventKey key_of_first(std::size_t at) const {
    return key_of(first_.memory, first_events_[at], op_of_first(at));
  }
  [[nodiscard]] EventKey key_of_other(std::size_t at) const {
    return key_of(other_.memory, other_events_[at], op_of_other(at));
  }

  [[nodiscard]] bool alike(const StepPair& pair) const {
    if (pair.first.end - pair.first.begin != pair.other.end - pair.other.begin) return false;
    for (std::size_t a = pair.first.begin, b = pair.other.begin; a < pair.first.end; ++a, ++b) {
      if (op_of_first(a) < 0 || key_of_first(a) != key_of_other(b)) return false;
    }
    return true;
  }

  [[nodiscard]] Matches matches_of(const StepPair& pair) const {
    Matches matches;
    if (alike(pair)) {
      for (std::size_t a = pair.first.begin, b = pair.other.begin; a < pair.first.end; ++a, ++b)
        matches.emplace_back(a, b);
      return matches;
    }
    std::unordered_map<EventKey, std::size_t, EventKeyHash> at;
    Numbering of_other;
    for (std::size_t b = pair.other.begin; b < pair.other.end; ++b)
      if (op_of_other(b) >= 0) at.emplace(of_other.next(key_of_other(b)), b);
    Numbering of_first;
    for (std::size_t a = pair.first.begin; a < pair.first.end; ++a) {
      if (op_of_first(a) < 0) continue;
      if (const auto found = at.find(of_first.next(key_of_first(a))); found != at.end())
        matches.emplace_back(a, found->second);
    }
    return in_one_order(matches);
  }

  void join(const StepPair& pair) {
    const Matches matches = matches_of(pair);
    result_.same_events += static_cast<std::int64_t>(matches.size());
    std::size_t a = pair.first.begin, b = pair.other.begin;
    const auto add = [&](bool of_first, bool of_other) {
      a += of_first ? 1 : 0;
      b += of_other ? 1 : 0;
      result_.points.push_back({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b),
                                difference(other_live_[b], first_live_[a]), of_first, of_other, pair.first_again,
                                pair.other_again});
    };
    const auto up_to = [&](std::size_t a_end, std::size_t b_end) {
      while (a < a_end) add(true, false);
      while (b < b_end) add(false, true);
    };
    for (const auto& [x, y] : matches) {
      up_to(x, y);
      add(true, true);
    }
    up_to(pair.first.end, pair.other.end);
  }

  const Trace &first_, &other_;
  const Events &first_events_, &other_events_;
  const SameOps& ops_;
  std::vector<std::int64_t> first_live_, other_live_;
  MemoryByOp result_{};
};

}  // namespace

std::map<std::pair<Rank, Memory>, Events> memory_events(const Trace& trace) {
  const MemoryTable& table = trace.memory;
  std::map<std::pair<Rank, Memory>, Events> events;
  for (std::size_t i = 0; i < table.size();) {
    const Rank rank = table.rank[i];
    const Memory memory = table.memory[i];
    Events& list = events[{rank, memory}];
    for (; i < table.size() && table.rank[i] == rank && table.memory[i] == memory; ++i)
      list.push_back(static_cast<std::uint32_t>(i));
  }
  return events;
}

SameOps::SameOps(const Trace& first, const Trace& other)
    : by_id_(!first.header.plan_hash.empty() && first.header.plan_hash == other.header.plan_hash) {
  if (by_id_) return;
  std::unordered_map<std::string_view, std::int64_t> numbers;
  const auto keys_of = [&](const Trace& trace) {
    Keys keys;  // an op has one name
    for (std::size_t i = 0; i < trace.spans.size(); ++i) {
      const std::string_view name = trace.name_of(trace.spans.name[i]);
      if (!trace.spans.op[i].valid() || name.empty()) continue;
      if (const auto [at, added] = keys.try_emplace(trace.spans.op[i].value, -1); added)
        at->second = numbers.try_emplace(name, static_cast<std::int64_t>(numbers.size())).first->second;
    }
    return keys;
  };
  first_ = keys_of(first);
  other_ = keys_of(other);
}

std::int64_t SameOps::key(OpId op, const Keys& keys) const {
  if (by_id_ || !op.valid()) return op.valid() ? op.value : -1;
  const auto found = keys.find(op.value);
  return found == keys.end() ? -1 : found->second;
}

std::int64_t MemoryByOp::largest_bytes() const {
  if (points.empty()) return 0;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(magnitude(points[largest].bytes), INT64_MAX));
}

MemoryByOp memory_by_op(const Trace& first, const Events& first_events, const Trace& other, const Events& other_events,
                        const SameOps& ops) {
  return Join(first, first_events, other, other_events, ops).run();
}

MemoryPlace place_of(const MemoryPoint& point, const Trace& first, const Events& first_events, const Trace& other,
                     const Events& other_events) {
  const Trace& trace = point.of_first ? first : other;
  const std::uint32_t event =
      point.of_first ? first_events[point.first_moment - 1] : other_events[point.other_moment - 1];
  const OpId op = trace.memory.op[event];
  MemoryPlace place{.op = {}, .id = op, .phase = trace.memory.phase[event], .step = trace.memory.step[event]};
  if (point.of_other) place.step = other.memory.step[other_events[point.other_moment - 1]];
  if (!op.valid()) return place;
  for (std::size_t i = 0; i < trace.spans.size() && place.op.empty(); ++i)
    if (trace.spans.op[i] == op) place.op = trace.name_of(trace.spans.name[i]);
  if (place.op.empty()) place.op = "op " + std::to_string(op.value);
  return place;
}

LargestMemoryDifference largest_memory_difference(const Trace& first, const Trace& other) {
  const SameOps ops(first, other);
  const auto first_events = memory_events(first), other_events = memory_events(other);
  LargestMemoryDifference found;
  for (const auto& [key, events] : first_events) {
    const auto in_other = other_events.find(key);
    if (in_other == other_events.end()) continue;
    const MemoryByOp joined = memory_by_op(first, events, other, in_other->second, ops);
    if (joined.points.empty()) continue;
    const bool better = !found.compared || joined.largest_bytes() > found.bytes;
    found.compared = true;
    if (!better) continue;
    const Events &of_first = events, &of_other = in_other->second;
    const auto place = [&](std::size_t point) {
      return place_of(joined.points[point], first, of_first, other, of_other);
    };
    std::tie(found.rank, found.memory) = key;
    found.bytes = joined.largest_bytes();
    if (joined.equal()) continue;
    found.at = place(joined.largest);
    found.begin = place(joined.begin);
    found.begin_bytes = joined.points[joined.begin].bytes;
  }
  return found;
}

}  // namespace shard
