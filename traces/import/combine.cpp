// Tables are joined by content, events moved to the common clock one by one.
#include "traces/import/combine.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "traces/base/numbers.h"
#include "traces/base/wrapping.h"
#include "traces/import/builder.h"
#include "traces/import/kineto.h"
#include "traces/profile.h"
#include "traces/stack_ids.h"

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

/// Adds one trace's tables and events to another's.
class Joiner {
 public:
  explicit Joiner(Trace& into) : into_(into) {}

  void add(const Trace& from, std::int64_t shift) {
    const auto moved = [&](std::int64_t time) { return time + shift; };
    std::vector<NameId> names;
    for (const std::string& name : from.names) names.push_back(this->name(name));
    const auto named = [&](NameId id) { return id.valid() ? names[static_cast<std::size_t>(id.value)] : id; };
    std::vector<TrackId> tracks;
    for (const Track& track : from.tracks) tracks.push_back(this->track(track));
    const auto on = [&](TrackId id) { return tracks[static_cast<std::size_t>(id.value)]; };
    const std::vector<StackId> stacks = add_stacks(from, names);

    for (std::size_t i = 0; i < from.spans.size(); ++i) {
      Span span = from.spans[i];
      span.track = on(span.track);
      span.name = named(span.name);
      span.begin_ns = moved(span.begin_ns);
      into_.spans.push_back(span);
    }
    for (std::size_t i = 0; i < from.memory.size(); ++i) {
      MemoryEvent event = from.memory[i];
      event.time_ns = moved(event.time_ns);
      if (event.stack.valid()) event.stack = stacks[static_cast<std::size_t>(event.stack.value)];
      into_.memory.push_back(event);
    }
    for (Counter counter : from.counters) {
      counter.name = named(counter.name);
      counter.time_ns = moved(counter.time_ns);
      into_.counters.push_back(counter);
    }
    for (ChunkState state : from.chunk_states) {
      state.time_ns = moved(state.time_ns);
      into_.chunk_states.push_back(state);
    }
    for (const Flow& flow : from.flows)
      into_.flows.push_back(
          {on(flow.from_track), moved(flow.from_ns), on(flow.to_track), moved(flow.to_ns), flow.kind});
    into_.arenas.insert(into_.arenas.end(), from.arenas.begin(), from.arenas.end());
    into_.collectives.insert(into_.collectives.end(), from.collectives.begin(), from.collectives.end());
    into_.dropped_count += from.dropped_count;
    into_.skipped_frame_count += from.skipped_frame_count;
    into_.truncated.insert(into_.truncated.end(), from.truncated.begin(), from.truncated.end());
    track_of_ = std::move(tracks);
    name_of_ = std::move(names);
  }
  /// An instant of the trace added last.
  [[nodiscard]] Instant place(Instant instant, std::int64_t shift) const {
    if (instant.track.valid()) instant.track = track_of_[static_cast<std::size_t>(instant.track.value)];
    if (instant.name.valid()) instant.name = name_of_[static_cast<std::size_t>(instant.name.value)];
    instant.time_ns += shift;
    return instant;
  }

 private:
  NameId name(const std::string& text) {
    const auto [at, added] = names_.try_emplace(text, static_cast<std::int32_t>(into_.names.size()));
    if (added) into_.names.push_back(text);
    return NameId{at->second};
  }
  TrackId track(const Track& track) {
    const auto [at, added] = tracks_.try_emplace({track.rank, track.kind, track.stream, track.memory, track.name},
                                                 static_cast<std::int32_t>(into_.tracks.size()));
    if (added) into_.tracks.push_back(track);
    return TrackId{at->second};
  }
  std::vector<StackId> add_stacks(const Trace& from, const std::vector<NameId>& names) {
    const auto named = [&](NameId id) { return id.valid() ? names[static_cast<std::size_t>(id.value)] : id; };
    std::vector<FrameId> frames;
    for (const StackFrame& frame : from.frames) {
      const StackFrame renamed{named(frame.function), named(frame.file), frame.line};
      const auto [id, added] = stack_ids_.frame(renamed);
      if (added) into_.frames.push_back(renamed);
      frames.push_back(id);
    }
    std::vector<StackId> stacks;
    for (const StackNode& node : from.stacks) {  // callers come before whom they call
      const StackNode renamed{node.frame.valid() ? frames[static_cast<std::size_t>(node.frame.value)] : node.frame,
                              node.caller.valid() ? stacks[static_cast<std::size_t>(node.caller.value)] : node.caller};
      const auto [id, added] = stack_ids_.stack(renamed);
      if (added) into_.stacks.push_back(renamed);
      stacks.push_back(id);
    }
    return stacks;
  }

  Trace& into_;
  std::map<std::string, std::int32_t> names_;
  std::map<std::tuple<Rank, TrackKind, Stream, Memory, std::string>, std::int32_t> tracks_;
  StackIds stack_ids_;
  std::vector<TrackId> track_of_;
  std::vector<NameId> name_of_;
};

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

class Combiner {
 public:
  explicit Combiner(std::vector<NamedTrace> traces) : traces_(std::move(traces)) {}

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
    if (const Result<void> apart = one_recording_each(); !apart) return apart.error();
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
    by_clock_.assign(traces_.size(), false);
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
      by_clock_[i] = true;
      shifts_[i] = wrapping_sum(*own, wrapping_negation(*axis));
      if (!extent.any) continue;
      if (known.any && (extent.end + shifts_[i] < known.begin || extent.begin + shifts_[i] > known.end)) {
        const bool before = extent.end + shifts_[i] < known.begin;
        say(i,
            std::string(before ? "ends " : "begins ") +
                seconds_text(before ? known.begin - extent.end - shifts_[i] : extent.begin + shifts_[i] - known.end) +
                (before ? " before the others begin" : " after the others end"));
      }
      known.add(extent.begin + shifts_[i], extent.end + shifts_[i]);
    }
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      const Extent extent = extent_of(traces_[i].loaded.trace);
      if (by_clock_[i] || !extent.any) continue;
      if (known.any && fits(extent, known.begin - extent.begin)) shifts_[i] = known.begin - extent.begin;
      if (!known.any) known.add(extent.begin, extent.end);
    }
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
      joiner.add(each.trace, shifts_[i]);
      for (const Instant& instant : each.instants) all.instants.push_back(joiner.place(instant, shifts_[i]));
      add_header(each.trace.header, all.trace.header);
      all.lane_count += each.lane_count;
      all.memory_event_count += each.memory_event_count;
      all.flow_event_count += each.flow_event_count;
      for (const std::string& note : each.notes) all.notes.push_back(traces_[i].name + ": " + note);
      if (each.snapshot && !all.snapshot) all.snapshot = std::move(each.snapshot);
      all.parts.push_back({traces_[i].name, each.format, ranks_of(each.trace), by_clock_[i], shifts_[i], says_[i]});
      aligned += (aligned.empty() ? "" : "; ") + to_text(all.parts.back());
    }
    std::ranges::stable_sort(all.instants, {}, &Instant::time_ns);
    all.trace.header.metadata["aligned"] = aligned;
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
  std::vector<std::int64_t> shifts_;
  std::vector<bool> by_clock_;
  std::size_t axis_ = 0;
};

}  // namespace

std::string to_text(const CombinedPart& part) {
  std::string text =
      part.name + (part.by_clock ? " by its clock" : " at the others' begin, since it says no Unix time");
  if (!part.says.empty()) text += " (" + part.says + ")";
  return text;
}

Result<LoadedTrace> combine(std::vector<NamedTrace> traces) {
  if (traces.empty()) return Error{Errc::usage, "no traces to combine", "", ""};
  if (traces.size() == 1) return std::move(traces.front().loaded);
  return Combiner(std::move(traces)).run();
}

Result<LoadedTrace> load_all(const std::vector<std::string>& paths, bool incomplete) {
  std::vector<NamedTrace> traces;
  for (const std::string& path : paths) {
    Result<LoadedTrace> loaded = load_any(std::filesystem::path(path));
    if (!loaded) return loaded.error();
    if (const Result<void> whole = check_whole(*loaded, path); !whole && !incomplete) return whole.error();
    traces.push_back({std::filesystem::path(path).filename().string(), std::move(*loaded)});
  }
  return combine(std::move(traces));
}

}  // namespace shard
