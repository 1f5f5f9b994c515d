// Tables are joined by content, events moved to the common clock one by one.
#include "traces/import/combine.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "traces/base/numbers.h"
#include "traces/base/wrapping.h"
#include "traces/import/align.h"
#include "traces/import/builder.h"
#include "traces/import/joiner.h"
#include "traces/import/kineto.h"
#include "traces/profile.h"

namespace shard {
namespace {

/// Begin and end of a trace's spans and memory events.
struct Extent {
  std::int64_t begin = 0, end = 0;
  bool any = false;
  void add(std::int64_t from, std::int64_t to) {
    begin = any ? std::min(begin, from) : from;
    end = any ? std::max(end, to) : to;
    any = true;
  }
};

using Extents = std::map<Rank, Extent>;

Extents extents_of(const Trace& trace) {
  Extents extents;
  for (std::size_t i = 0; i < trace.spans.size(); ++i)
    extents[trace.track_of(trace.spans.track[i]).rank].add(trace.spans.begin_ns[i],
                                                           trace.spans.begin_ns[i] + trace.spans.duration_ns[i]);
  for (std::size_t i = 0; i < trace.memory.size(); ++i)
    extents[trace.memory.rank[i]].add(trace.memory.time_ns[i], trace.memory.time_ns[i]);
  return extents;
}

Extent extent_of(const Trace& trace) {
  Extent all;
  for (const auto& [rank, extent] : extents_of(trace)) all.add(extent.begin, extent.end);
  return all;
}

bool is_snapshot(const NamedTrace& trace) {
  return trace.loaded.format == TraceFormat::pytorch_snapshot;
}

/// Devices whose kernels ran, with the ranks that ran them.
std::map<std::int32_t, std::set<Rank>> ranks_of_devices(const std::vector<NamedTrace>& traces) {
  std::map<std::int32_t, std::set<Rank>> found;
  for (const NamedTrace& each : traces) {
    if (is_snapshot(each)) continue;
    for (const Track& track : each.loaded.trace.tracks)
      if (const DeviceNumber device = device_of(track); device.valid()) found[device.value].insert(track.rank);
  }
  return found;
}

/// The rank that a snapshot's device is, and what there is to say about it.
Rank rank_of_device(std::int32_t device, bool only, const std::map<std::int32_t, std::set<Rank>>& ranks,
                    std::string& says) {
  std::set<Rank> all;
  for (const auto& [number, of] : ranks) all.insert(of.begin(), of.end());
  if (const auto at = ranks.find(device); at != ranks.end() && at->second.size() == 1) return *at->second.begin();
  const auto add = [&](const std::string& text) { says += (says.empty() ? "" : "; ") + text; };
  if (all.size() == 1 && only) {
    add("its device " + std::to_string(device) + " is taken for rank " + std::to_string(all.begin()->value) +
        "'s, whose kernels ran on another number");
    return *all.begin();
  }
  if (!all.empty())
    add("no one rank's kernels ran on its device " + std::to_string(device) + ", shown as rank " +
        std::to_string(device));
  return Rank{device};
}

/// A snapshot's own words about devices follow its trace's. False where they cannot: its events are by device.
bool rename_devices(Snapshot& snapshot, const std::map<Rank, Rank>& to) {
  constexpr std::int32_t kMostDevices = 4096;
  Rank last;
  for (const auto& [device, rank] : to) {
    if (rank <= last || rank.value >= kMostDevices) return false;
    last = rank;
  }
  const auto rename = [&](std::int32_t& device) {
    if (const auto at = to.find(Rank{device}); at != to.end()) device = at->second.value;
  };
  for (SnapshotSegment& segment : snapshot.segments) rename(segment.device);
  for (SnapshotEvent& event : snapshot.events) rename(event.device);
  for (SnapshotSegment& segment : snapshot.at_start.segments) rename(segment.device);
  for (Snapshot::Start::Live& block : snapshot.at_start.blocks) rename(block.device);
  if (last.valid()) snapshot.device_count = std::max(snapshot.device_count, static_cast<std::size_t>(last.value) + 1);
  return true;
}

void rename_devices(NamedTrace& snapshot, const std::map<std::int32_t, std::set<Rank>>& ranks, std::string& says) {
  Trace& trace = snapshot.loaded.trace;
  std::set<Rank> used;
  for (const Rank rank : trace.memory.rank) used.insert(rank);
  std::map<Rank, Rank> to;
  for (const Rank device : used) to[device] = rank_of_device(device.value, used.size() == 1, ranks, says);
  std::set<Rank> different;
  for (const auto& [device, rank] : to) different.insert(rank);
  if (different.size() < to.size()) {  // memories of two devices are not one memory
    for (auto& [device, rank] : to) rank = device;
    says += std::string(says.empty() ? "" : "; ") +
            "several of its devices are one rank's, shown as ranks of their numbers";
  }
  const auto rename = [&](Rank& rank) {
    if (const auto at = to.find(rank); at != to.end()) rank = at->second;
  };
  for (Rank& rank : trace.memory.rank) rename(rank);
  for (Track& track : trace.tracks) rename(track.rank);
  for (Counter& counter : trace.counters) rename(counter.rank);
  for (ArenaSummary& arena : trace.arenas) rename(arena.rank);
  for (MemoryCapacity& capacity : trace.header.capacities) rename(capacity.rank);
  const bool same = std::ranges::all_of(to, [](const auto& entry) { return entry.first == entry.second; });
  if (snapshot.loaded.snapshot && !same && !rename_devices(*snapshot.loaded.snapshot, to)) {
    says += "; its segments are left out, since their devices are other ranks in another order";
    snapshot.loaded.snapshot.reset();
  }
}

/// A profile sees sums and addresses, a snapshot blocks and stacks.
std::int64_t drop_device_memory(Trace& trace, const std::set<Rank>& ranks) {
  MemoryTable kept;
  std::int64_t dropped = 0;
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    if (trace.memory.memory[i] == Memory::device && ranks.contains(trace.memory.rank[i])) {
      ++dropped;
    } else {
      kept.push_back(trace.memory[i]);
    }
  }
  trace.memory = std::move(kept);
  return dropped;
}

std::string seconds_text(std::int64_t ns) {
  return duration(Seconds{static_cast<double>(ns) / 1e9}, 4);
}

/// "2026-11-28 13:46 UTC".
std::string utc_text(std::int64_t unix_seconds) {
  const std::chrono::sys_seconds at{std::chrono::seconds(unix_seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  const auto two = [](auto number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return std::to_string(static_cast<int>(date.year())) + "-" + two(static_cast<unsigned>(date.month())) + "-" +
         two(static_cast<unsigned>(date.day())) + " " + two(time.hours().count()) + ":" + two(time.minutes().count()) +
         " UTC";
}

class Combiner {
 public:
  Combiner(std::vector<NamedTrace> traces, bool force) : traces_(std::move(traces)), force_(force) {}

  Result<LoadedTrace> run() {
    if (const Result<void> same = one_run(); !same) return same.error();
    says_.resize(traces_.size());
    const auto ranks = ranks_of_devices(traces_);
    std::set<Rank> of_snapshots;
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      if (!is_snapshot(traces_[i])) continue;
      rename_devices(traces_[i], ranks, says_[i]);
      for (const Rank rank : traces_[i].loaded.trace.memory.rank) of_snapshots.insert(rank);
    }
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      if (is_snapshot(traces_[i])) continue;
      const std::int64_t dropped = drop_device_memory(traces_[i].loaded.trace, of_snapshots);
      if (dropped > 0)
        say(i, std::to_string(dropped) + " events of device memory left out, which a snapshot says in full");
    }
    find_shifts();
    find_meetings();
    if (const Result<void> apart = one_recording_each(); !apart) return apart.error();
    if (const Result<void> once = no_step_twice(); !once) return once.error();
    if (const Result<void> near = near_in_time(); !near) return near.error();
    return join();
  }

 private:
  void say(std::size_t i, const std::string& text) { says_[i] += (says_[i].empty() ? "" : "; ") + text; }

  [[nodiscard]] Result<void> one_run() const {
    const Header& first = traces_.front().loaded.trace.header;
    const auto error = [&](const NamedTrace& other, const char* what) {
      return Error{Errc::contradiction,
                   std::string("recordings of two runs: ") + what + " differs from that of " + traces_.front().name,
                   other.name, "recordings of one run only; 'compare' lines up two"};
    };
    for (const NamedTrace& each : traces_) {
      const Header& header = each.loaded.trace.header;
      if (header.kind != first.kind) return error(each, "the kind (predicted or measured)");
      if (header.plan_hash != first.plan_hash) return error(each, "the plan's hash");
    }
    return {};
  }

  /// Unix time less the trace's own, where that is known.
  static std::optional<std::int64_t> epoch(const Header& header) {
    if (header.wall_ns == 0) return std::nullopt;
    return wrapping_sum(header.wall_ns, wrapping_negation(header.clock_ns));
  }
  static std::int64_t wrapping_negation(std::int64_t value) {
    return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(value));
  }
  /// A header may say anything; times stay within the format's.
  static bool fits(const Extent& extent, std::int64_t shift) {
    return import::Builder::in_range(shift) && import::Builder::in_range(extent.begin + shift) &&
           import::Builder::in_range(extent.end + shift);
  }

  void find_shifts() {
    shifts_.assign(traces_.size(), 0);
    by_.assign(traces_.size(), AlignedBy::begin);
    bounds_.assign(traces_.size(), std::nullopt);
    gaps_.assign(traces_.size(), "");
    apart_.assign(traces_.size(), 0);
    std::optional<std::int64_t> axis;
    Extent known;
    for (const std::size_t i : joining_order()) {  // a snapshot's times stay its own
      const std::optional<std::int64_t> own = epoch(traces_[i].loaded.trace.header);
      const Extent extent = extent_of(traces_[i].loaded.trace);
      if (!own || !fits(extent, wrapping_sum(*own, wrapping_negation(axis.value_or(*own))))) continue;
      if (!axis) {
        axis = own;
        axis_ = i;
      }
      by_[i] = AlignedBy::clock;
      shifts_[i] = wrapping_sum(*own, wrapping_negation(*axis));
      if (!extent.any) continue;
      if (known.any && (extent.end + shifts_[i] < known.begin || extent.begin + shifts_[i] > known.end)) {
        const bool before = extent.end + shifts_[i] < known.begin;
        apart_[i] = before ? known.begin - extent.end - shifts_[i] : extent.begin + shifts_[i] - known.end;
        gaps_[i] = std::string(before ? "ends " : "begins ") + seconds_text(apart_[i]) +
                   (before ? " before the others begin" : " after the others end");
      }
      known.add(extent.begin + shifts_[i], extent.end + shifts_[i]);
    }
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      const Extent extent = extent_of(traces_[i].loaded.trace);
      if (by_[i] == AlignedBy::clock || !extent.any) continue;
      if (known.any && fits(extent, known.begin - extent.begin)) shifts_[i] = known.begin - extent.begin;
      if (!known.any) known.add(extent.begin, extent.end);
    }
  }

  [[nodiscard]] Result<void> near_in_time() const {
    if (force_) return {};
    for (std::size_t i = 0; i < traces_.size(); ++i)
      if (by_[i] == AlignedBy::clock && apart_[i] > kOneRunNs)
        return Error{Errc::contradiction,
                     "recordings of two runs, by their clocks: it " + gaps_[i] + " (" + clock_text(i) + ")",
                     traces_[i].name, "recordings of one run; --force puts these on one axis all the same"};
    return {};
  }

  /// When a recording began by its clock, and when the others that have one.
  [[nodiscard]] std::string clock_text(std::size_t which) const {
    std::string text;
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      if (by_[i] != AlignedBy::clock) continue;
      const Trace& trace = traces_[i].loaded.trace;
      text += (text.empty() ? "" : ", ") + (i == which ? "this" : traces_[i].name) + " begins at " +
              utc_text(wrapping_sum(*epoch(trace.header), extent_of(trace).begin) / 1'000'000'000);
    }
    return text;
  }

  /// Of one rank's run there is one recording of a step: two would be summed up.
  [[nodiscard]] Result<void> no_step_twice() const {
    std::map<std::pair<Rank, std::int32_t>, std::size_t> seen;
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      const Trace& trace = traces_[i].loaded.trace;
      if (trace.header.plan_hash.empty()) continue;
      std::set<std::pair<Rank, std::int32_t>> own;
      for (std::size_t k = 0; k < trace.spans.size(); ++k)
        if (trace.spans.op[k].valid() && trace.spans.step[k] >= 0)
          own.insert({trace.track_of(trace.spans.track[k]).rank, trace.spans.step[k]});
      for (const auto& key : own)
        if (const auto [at, added] = seen.try_emplace(key, i); !added)
          return Error{Errc::contradiction,
                       "two recordings of rank " + std::to_string(key.first.value) + ", step " +
                           std::to_string(key.second) + ": " + traces_[at->second].name + " and this",
                       traces_[i].name, "each rank of a run once; 'compare' lines up two runs"};
    }
    return {};
  }

  /// What the recordings did together bounds how far their clocks can be apart, and tells it where they do not.
  void find_meetings() {
    moves_.clear();
    for (const std::int64_t shift : shifts_) moves_.emplace_back(shift);
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      if (is_snapshot(traces_[i])) continue;
      if (first) {
        meet(*first, i);
      } else {
        first = i;
      }
    }
    for (std::size_t i = 0; i < traces_.size(); ++i)
      if (by_[i] == AlignedBy::clock && !gaps_[i].empty()) say(i, gaps_[i]);
  }

  void meet(std::size_t first, std::size_t i) {
    const bool clocks = by_[first] == AlignedBy::clock && by_[i] == AlignedBy::clock;
    const std::int64_t by_clock = shifts_[i] - shifts_[first];
    std::string why;
    const std::optional<Alignment> found = align_by_collectives(traces_[first].loaded.trace, traces_[i].loaded.trace,
                                                                clocks ? std::optional(by_clock) : std::nullopt, why);
    const Extent extent = extent_of(traces_[i].loaded.trace);
    if (!found || !extent.any) return;
    const std::int64_t shift = found->shift.moved(extent.begin) - extent.begin;
    const std::int64_t apart = shift - by_clock;
    if (!fits(extent, shift + shifts_[first])) return;
    // Which collective is which is a guess there; clocks of hosts that are set by others' are nearer.
    constexpr std::int64_t kUnlikely = 50'000'000;
    if (clocks && !found->certain && std::abs(apart) > kUnlikely) {
      say(i, "its collectives would put it " + seconds_text(std::abs(apart)) + (apart > 0 ? " later" : " earlier"));
      return;
    }
    bounds_[i] = found->bound_ns;
    if (found->clock_agrees) return;
    if (clocks) say(i, "its clock says " + seconds_text(std::abs(apart)) + (apart > 0 ? " less" : " more"));
    by_[i] = AlignedBy::collectives;
    moves_[i] = found->shift.and_then(shifts_[first]);
    shifts_[i] = shift + shifts_[first];
  }

  [[nodiscard]] Result<void> one_recording_each() const {
    std::vector<Extents> extents;
    for (const NamedTrace& each : traces_) extents.push_back(extents_of(each.loaded.trace));
    for (std::size_t i = 0; i < traces_.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) {
        if (is_snapshot(traces_[i]) != is_snapshot(traces_[k])) continue;
        for (const auto& [rank, a] : extents[i]) {
          const auto at = extents[k].find(rank);
          if (at == extents[k].end()) continue;
          const Extent& b = at->second;
          if (a.begin + shifts_[i] >= b.end + shifts_[k] || b.begin + shifts_[k] >= a.end + shifts_[i]) continue;
          return Error{
              Errc::contradiction,
              "two recordings of rank " + std::to_string(rank.value) + " at one time: " + traces_[k].name + " and this",
              traces_[i].name, "recordings of different ranks, which a profile names in distributedInfo"};
        }
      }
    return {};
  }

  Result<LoadedTrace> join() {
    LoadedTrace all;
    all.format = traces_[axis_].loaded.format;
    all.trace.header = traces_[axis_].loaded.trace.header;
    all.trace.format_minor = traces_[axis_].loaded.trace.format_minor;
    Joiner joiner(all.trace);
    std::string aligned;
    for (const std::size_t i : joining_order()) {
      LoadedTrace& each = traces_[i].loaded;
      joiner.add(each.trace, moves_[i]);
      for (const Instant& instant : each.instants) all.instants.push_back(joiner.place(instant, moves_[i]));
      add_header(each.trace.header, all.trace.header);
      all.lane_count += each.lane_count;
      all.memory_event_count += each.memory_event_count;
      all.flow_event_count += each.flow_event_count;
      for (const std::string& note : each.notes) all.notes.push_back(traces_[i].name + ": " + note);
      if (each.snapshot && !all.snapshot) all.snapshot = std::move(each.snapshot);
      all.parts.push_back(
          {traces_[i].name, each.format, ranks_of(each.trace), by_[i], shifts_[i], bounds_[i], says_[i]});
      aligned += (aligned.empty() ? "" : "; ") + to_text(all.parts.back());
    }
    std::ranges::stable_sort(all.instants, {}, &Instant::time_ns);
    all.trace.header.metadata["aligned"] = aligned;
    if (const std::vector<Rank> ranks = ranks_of(all.trace); !ranks.empty())
      all.trace.header.world_size = std::max(all.trace.header.world_size, ranks.back().value + 1);
    std::vector<import::StepRange> steps;
    for (const MarkedStep& step : marked_steps(all.trace))
      steps.push_back(
          {.begin_ns = step.begin_ns, .end_ns = step.end_ns, .step = step.step, .process = 0, .rank = step.rank});
    import::number_steps(steps, all.trace);
    return all;
  }

  /// A snapshot's blocks name stacks by their numbers in its trace, which stay what they are for the first that is
  /// joined.
  [[nodiscard]] std::vector<std::size_t> joining_order() const {
    std::vector<std::size_t> order(traces_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return !is_snapshot(traces_[i]); });
    return order;
  }

  static void add_header(const Header& from, Header& into) {
    into.world_size = std::max(into.world_size, from.world_size);
    for (const auto& [key, value] : from.metadata) into.metadata.try_emplace(key, value);
    if (into.units.empty()) into.units = from.units;
    if (into.strategy.empty()) into.strategy = from.strategy;
    for (const MemoryCapacity& capacity : from.capacities)
      if (std::ranges::find(into.capacities, capacity) == into.capacities.end()) into.capacities.push_back(capacity);
  }

  std::vector<NamedTrace> traces_;
  std::vector<std::string> says_;
  std::vector<std::string> gaps_;    ///< between a recording and the others, by its clock
  std::vector<std::int64_t> apart_;  ///< the same in nanoseconds; 0 where they meet
  std::vector<std::int64_t> shifts_;
  std::vector<ClockShift> moves_;
  std::vector<AlignedBy> by_;
  std::vector<std::optional<std::int64_t>> bounds_;
  std::size_t axis_ = 0;
  bool force_ = false;
};

}  // namespace

std::string to_text(const CombinedPart& part) {
  std::string text = part.name;
  switch (part.by) {
    case AlignedBy::begin: text += " at the others' begin, since it says no Unix time"; break;
    case AlignedBy::clock: text += " by its clock"; break;
    case AlignedBy::collectives: text += " by its collectives"; break;
  }
  if (part.bound_ns)
    text +=
        (part.by == AlignedBy::clock ? ", which its collectives bound to " : ", to ") + seconds_text(*part.bound_ns);
  if (!part.says.empty()) text += " (" + part.says + ")";
  return text;
}

Result<LoadedTrace> combine(std::vector<NamedTrace> traces, bool force) {
  if (traces.empty()) return Error{Errc::usage, "no traces to combine", "", ""};
  if (traces.size() == 1) return std::move(traces.front().loaded);
  return Combiner(std::move(traces), force).run();
}

Result<LoadedTrace> load_all(const std::vector<std::string>& paths, bool incomplete, bool force) {
  std::vector<NamedTrace> traces;
  for (const std::string& path : paths) {
    Result<LoadedTrace> loaded = load_any(std::filesystem::path(path));
    if (!loaded) return loaded.error();
    if (const Result<void> whole = check_whole(*loaded, path); !whole && !incomplete) return whole.error();
    traces.push_back({std::filesystem::path(path).filename().string(), std::move(*loaded)});
  }
  return combine(std::move(traces), force);
}

}  // namespace shard
