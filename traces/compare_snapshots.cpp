// Common runs by suffix automata, longest first.
#include "traces/compare_snapshots.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_map>

#include "traces/base/numbers.h"

namespace shard {
namespace {

/// What an event did, as one number: blocks of one size look alike; frees are negative.
using BlockKey = std::int64_t;

struct SnapshotSide {
  std::vector<BlockKey> keys;
  std::vector<std::size_t> events;  ///< of the snapshot, by key
  std::vector<std::int64_t> bytes;  ///< allocated, 0 for frees
};

std::int32_t busiest(const Snapshot& snapshot) {
  std::map<std::int32_t, std::int64_t> events;
  for (const SnapshotEvent& event : snapshot.events) ++events[event.device];
  const auto most = std::ranges::max_element(events, {}, [](const auto& each) { return each.second; });
  return most == events.end() ? 0 : most->first;
}

SnapshotSide side_of(const Snapshot& snapshot, std::int32_t device) {
  constexpr std::int64_t kUnit = 512;
  SnapshotSide side;
  std::unordered_map<std::uint64_t, BlockKey> live;  // by address: its key
  for (std::size_t i = 0; i < snapshot.events.size(); ++i) {
    const SnapshotEvent& event = snapshot.events[i];
    if (event.device != device) continue;
    if (event.action == SnapshotAction::alloc) {
      const BlockKey key = std::max<BlockKey>(1, (event.bytes + kUnit - 1) / kUnit);
      live[event.address] = key;
      side.keys.push_back(key);
      side.bytes.push_back(event.bytes);
    } else if (event.action == SnapshotAction::free_completed) {
      const auto of = live.find(event.address);
      side.keys.push_back(of == live.end() ? -(event.bytes + kUnit - 1) / kUnit : -of->second);
      side.bytes.push_back(0);
    } else {
      continue;
    }
    side.events.push_back(i);
  }
  return side;
}

/// All substrings of a sequence.
class SuffixAutomaton {
 public:
  explicit SuffixAutomaton(std::span<const BlockKey> keys) : states_(1) {
    states_.reserve(2 * keys.size() + 1);
    for (const BlockKey& key : keys) add(key);
  }
  struct Match {
    std::size_t end = 0;  ///< in the other sequence
    std::size_t own_end = 0;
    std::size_t length = 0;
  };
  [[nodiscard]] Match longest(std::span<const BlockKey> other) const {
    Match best;
    std::size_t at = 0, length = 0;
    for (std::size_t i = 0; i < other.size(); ++i) {
      while (at != 0 && !states_[at].next.contains(other[i])) {
        at = static_cast<std::size_t>(states_[at].link);
        length = states_[at].length;
      }
      const auto next = states_[at].next.find(other[i]);
      if (next == states_[at].next.end()) continue;
      at = next->second;
      if (++length > best.length) best = {i + 1, states_[at].end, length};
    }
    return best;
  }

 private:
  struct State {
    std::size_t length = 0;
    std::int64_t link = -1;
    std::size_t end = 0;  ///< of the first occurrence
    std::map<BlockKey, std::size_t> next{};
  };

  void add(BlockKey key) {
    const std::size_t now = states_.size();
    states_.push_back({.length = states_[last_].length + 1, .end = states_[last_].length + 1});
    auto at = static_cast<std::int64_t>(last_);
    const auto state = [&](std::int64_t i) -> State& { return states_[static_cast<std::size_t>(i)]; };
    for (; at >= 0 && !state(at).next.contains(key); at = state(at).link) state(at).next[key] = now;
    last_ = now;
    if (at < 0) {
      states_[now].link = 0;
      return;
    }
    const std::size_t next = state(at).next[key];
    if (states_[next].length == state(at).length + 1) {
      states_[now].link = static_cast<std::int64_t>(next);
      return;
    }
    const std::size_t copy = states_.size();
    states_.push_back(State(states_[next]));
    states_[copy].length = state(at).length + 1;
    for (; at >= 0 && state(at).next.contains(key) && state(at).next[key] == next; at = state(at).link)
      state(at).next[key] = copy;
    states_[next].link = states_[now].link = static_cast<std::int64_t>(copy);
  }

  std::vector<State> states_;
  std::size_t last_ = 0;
};

struct Stretch {
  std::size_t begin = 0, end = 0;
  [[nodiscard]] std::span<const BlockKey> of(const std::vector<BlockKey>& keys) const {
    return std::span(keys).subspan(begin, end - begin);
  }
};

std::vector<CommonRun> common_runs(const SnapshotSide& a, const SnapshotSide& b) {
  std::vector<CommonRun> runs;
  // Of recordings shorter than that, all of one may be a run.
  const std::size_t shortest = std::max<std::size_t>(
      1, std::min({static_cast<std::size_t>(SnapshotComparison::kShortest), a.keys.size(), b.keys.size()}));
  std::vector<std::pair<Stretch, Stretch>> open{{{0, a.keys.size()}, {0, b.keys.size()}}};
  while (!open.empty()) {
    const auto [in_a, in_b] = open.back();
    open.pop_back();
    const auto match = SuffixAutomaton(in_b.of(b.keys)).longest(in_a.of(a.keys));
    if (match.length < shortest) continue;
    const std::size_t end_a = in_a.begin + match.end, end_b = in_b.begin + match.own_end;
    const std::size_t begin_a = end_a - match.length, begin_b = end_b - match.length;
    runs.push_back({{static_cast<std::int64_t>(begin_a), static_cast<std::int64_t>(begin_b)},
                    static_cast<std::int64_t>(match.length)});
    open.push_back({{in_a.begin, begin_a}, {in_b.begin, begin_b}});
    open.push_back({{end_a, in_a.end}, {end_b, in_b.end}});
  }
  std::ranges::sort(runs, {}, [](const CommonRun& run) { return run.begin.first; });
  return runs;
}

std::int64_t allocated(const SnapshotSide& side, std::int64_t begin, std::int64_t end) {
  std::int64_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) sum += side.bytes[static_cast<std::size_t>(i)];
  return sum;
}

/// "alloc of 512 bytes in mm (model.layers.0)".
std::string told(const LoadedTrace& loaded, const SnapshotSide& side, std::int64_t at) {
  if (at >= static_cast<std::int64_t>(side.events.size())) return "";
  const SnapshotEvent& event = loaded.snapshot->events[side.events[static_cast<std::size_t>(at)]];
  std::string text = std::string(event.action == SnapshotAction::alloc ? "alloc of " : "free of ") +
                     with_commas(event.bytes) + " bytes";
  if (!event.stack.valid()) return text;
  const FrameId frame = loaded.trace.stack_of(event.stack).frame;
  if (!frame.valid()) return text;
  const StackFrame& of = loaded.trace.frame_of(frame);
  return text + " in " + std::string(loaded.trace.name_of(of.function)) + " (" +
         std::string(loaded.trace.name_of(of.file)) + ")";
}

/// Peaks of one rank, and categories there.
struct SnapshotPeak {
  std::int64_t allocated = 0, reserved = 0;
  std::vector<std::int64_t> by_category = std::vector<std::int64_t>(kCategoryCount);
};
SnapshotPeak peak_of(const LoadedTrace& loaded, std::int32_t device) {
  SnapshotPeak peak;
  std::vector<std::int64_t> now(kCategoryCount);
  std::int64_t sum = 0;
  const MemoryTable& memory = loaded.trace.memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory.rank[i] != Rank{device}) continue;
    now[static_cast<std::size_t>(memory.category[i])] += memory.delta_bytes[i];
    sum += memory.delta_bytes[i];
    if (sum > peak.allocated) {
      peak.allocated = sum;
      peak.by_category = now;
    }
  }
  for (const ArenaSummary& arena : loaded.trace.arenas)
    if (arena.rank == Rank{device}) peak.reserved = std::max(peak.reserved, arena.peak_bytes);
  return peak;
}

double share(std::int64_t part, std::int64_t of) {
  return of == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(of);
}

}  // namespace

Result<SnapshotComparison> compare_snapshots(const LoadedTrace& a, const LoadedTrace& b, const std::string& name_a,
                                             const std::string& name_b) {
  for (const auto& [loaded, name] : {std::pair(&a, &name_a), std::pair(&b, &name_b)})
    if (!loaded->snapshot)
      return Error{Errc::contradiction, *name + " is no memory snapshot, and the other one is", *name,
                   "two snapshots, or two traces of one plan"};
  const std::int32_t device_a = busiest(*a.snapshot), device_b = busiest(*b.snapshot);
  const SnapshotSide in_a = side_of(*a.snapshot, device_a), in_b = side_of(*b.snapshot, device_b);
  SnapshotComparison c;
  c.label = {name_a, name_b};
  SnapshotPeak peak_a = peak_of(a, device_a), peak_b = peak_of(b, device_b);
  c.peak_allocated_bytes = {peak_a.allocated, peak_b.allocated};
  c.peak_reserved_bytes = {peak_a.reserved, peak_b.reserved};
  c.at_peak = {std::move(peak_a.by_category), std::move(peak_b.by_category)};
  c.events = {static_cast<std::int64_t>(in_a.keys.size()), static_cast<std::int64_t>(in_b.keys.size())};
  c.runs = common_runs(in_a, in_b);
  for (std::size_t i = 0; i < c.runs.size(); ++i) {
    const CommonRun& run = c.runs[i];
    c.common_events += run.count;
    const std::int64_t end_a = run.begin.first + run.count, end_b = run.begin.second + run.count;
    if (i == 0) c.first_difference = {told(a, in_a, end_a), told(b, in_b, end_b)};
    if (i + 1 == c.runs.size()) break;
    c.differing_bytes.first += allocated(in_a, end_a, c.runs[i + 1].begin.first);
    c.differing_bytes.second += allocated(in_b, end_b, c.runs[i + 1].begin.second);
  }
  return c;
}

nlohmann::ordered_json to_json(const SnapshotComparison& c) {
  nlohmann::ordered_json j{{"a", c.label.first},
                           {"b", c.label.second},
                           {"equal", c.equal()},
                           {"a_peak_allocated_bytes", c.peak_allocated_bytes.first},
                           {"b_peak_allocated_bytes", c.peak_allocated_bytes.second},
                           {"a_peak_reserved_bytes", c.peak_reserved_bytes.first},
                           {"b_peak_reserved_bytes", c.peak_reserved_bytes.second},
                           {"a_event_count", c.events.first},
                           {"b_event_count", c.events.second},
                           {"common_event_count", c.common_events},
                           {"a_differing_bytes", c.differing_bytes.first},
                           {"b_differing_bytes", c.differing_bytes.second},
                           {"a_first_difference", c.first_difference.first},
                           {"b_first_difference", c.first_difference.second}};
  auto& categories = j["categories_at_peak"] = nlohmann::ordered_json::array();
  for (std::size_t k = 0; k < kCategoryCount; ++k)
    if (c.at_peak.first[k] != 0 || c.at_peak.second[k] != 0)
      categories.push_back({{"category", to_string(static_cast<Category>(k))},
                            {"a_bytes", c.at_peak.first[k]},
                            {"b_bytes", c.at_peak.second[k]}});
  auto& runs = j["runs"] = nlohmann::ordered_json::array();
  for (const CommonRun& run : c.runs)
    runs.push_back({{"a_begin", run.begin.first}, {"b_begin", run.begin.second}, {"event_count", run.count}});
  return j;
}

std::string to_text(const SnapshotComparison& c) {
  constexpr std::size_t kName = 22, kNumber = 18;
  const auto cell = [=](const std::string& text) {
    return std::string(kNumber - std::min(kNumber, text.size()), ' ') + text;
  };
  const auto line = [&](std::string name, std::int64_t a, std::int64_t b) {
    name.resize(std::max(name.size(), kName), ' ');
    return name + cell(with_commas(a)) + cell(with_commas(b)) + cell((b > a ? "+" : "") + with_commas(b - a)) + "\n";
  };
  std::string text = "a  " + c.label.first + "\nb  " + c.label.second + "\n\n" + std::string(kName, ' ') + cell("a") +
                     cell("b") + cell("b - a") + "\n";
  text += line("peak allocated", c.peak_allocated_bytes.first, c.peak_allocated_bytes.second);
  text += line("peak reserved", c.peak_reserved_bytes.first, c.peak_reserved_bytes.second);
  for (std::size_t k = 0; k < kCategoryCount; ++k)
    if (c.at_peak.first[k] != 0 || c.at_peak.second[k] != 0)
      text += line(std::string("  ") + to_string(static_cast<Category>(k)), c.at_peak.first[k], c.at_peak.second[k]);
  text += "\nlined up by what was allocated and freed: " + with_commas(c.common_events) + " events (" +
          std::to_string(std::lround(share(c.common_events, c.events.first))) + " % of a, " +
          std::to_string(std::lround(share(c.common_events, c.events.second))) + " % of b) in " +
          std::to_string(c.runs.size()) + " runs\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(c.runs.size(), 10); ++i) {
    const CommonRun& run = c.runs[i];
    text += "  " + with_commas(run.count) + " events from " + with_commas(run.begin.first) + " of a and " +
            with_commas(run.begin.second) + " of b\n";
  }
  if (c.runs.empty()) return text + "nothing of the two is alike\n";
  const auto or_end = [](const std::string& what) { return what.empty() ? std::string("the end") : what; };
  if (!c.first_difference.first.empty() || !c.first_difference.second.empty())
    text += "behind the first run: a " + or_end(c.first_difference.first) + "; b " + or_end(c.first_difference.second) +
            "\n";
  return text;
}

}  // namespace shard
