// Intervals are sorted once per device; a sum over a window is the difference of two prefix sums.
#include "traces/profile.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "traces/base/moments.h"
#include "traces/inspect.h"

namespace shard {
namespace {

bool starts(std::string_view text, std::string_view word) {
  return text.substr(0, word.size()) == word;
}

/// Of older traces of ours and of recorders that say no more than a name: what only one kind is called.
Activity collective_of(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, 128))
    if (c != '_' && c != '-') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::array<std::pair<const char*, Activity>, 6> kWords = {{{"allgather", Activity::all_gather},
                                                                       {"reducescatter", Activity::reduce_scatter},
                                                                       {"allreduce", Activity::all_reduce},
                                                                       {"alltoall", Activity::all_to_all},
                                                                       {"broadcast", Activity::broadcast},
                                                                       {"sendrecv", Activity::send_receive}}};
  for (const auto& [word, kind] : kWords)
    if (text.find(word) != std::string::npos) return kind;
  return Activity::other_collective;
}

bool on_device(const Track& track) {
  return track.kind == TrackKind::stream && track.stream != Stream::host;
}

Direction direction_of(const Track& track, Activity activity, std::string_view name) {
  if (activity == Activity::fill) return Direction::fill;
  const auto has = [&](const char* word) { return name.find(word) != std::string_view::npos; };
  if (has("HtoD") || has("HostToDevice")) return Direction::to_device;
  if (has("DtoH") || has("DeviceToHost")) return Direction::to_host;
  if (has("DtoD") || has("DeviceToDevice")) return Direction::within_device;
  if (has("PtoP") || has("PeerToPeer")) return Direction::between_devices;
  if (has("HtoH") || has("HostToHost")) return Direction::on_host;
  if (track.stream == Stream::copy_in) return Direction::to_device;
  if (track.stream == Stream::copy_out) return Direction::to_host;
  return Direction::unknown;
}

/// Sums of what files say, which may be anything: at the most the most.
void add(std::int64_t& sum, std::int64_t value) {
  sum = sum > std::numeric_limits<std::int64_t>::max() - value ? std::numeric_limits<std::int64_t>::max() : sum + value;
}

/// A file of a million marks and as many devices has no million times a million steps to show.
constexpr std::size_t kMostDeviceSteps = 200'000;

/// What one device did.
struct Device {
  std::vector<Interval> all, compute, copies, collectives;
  std::set<std::int32_t> streams;
  Moments busy_moments, compute_moments, copy_moments, communication_moments, hidden_moments;

  void settle() {
    busy_moments = Moments(std::move(all));
    compute_moments = Moments(std::move(compute));
    copy_moments = Moments(std::move(copies));
    communication_moments = Moments(std::move(collectives));
    hidden_moments = both(compute_moments, communication_moments);
  }
  [[nodiscard]] DeviceTime within(std::int64_t begin, std::int64_t end) const {
    DeviceTime time;
    time.window_ns = end - begin;
    time.busy_ns = busy_moments.within(begin, end);
    time.idle_ns = time.window_ns - time.busy_ns;
    time.kernel_ns = compute_moments.within(begin, end);
    time.copy_ns = copy_moments.within(begin, end);
    time.communication_ns = communication_moments.within(begin, end);
    time.hidden_ns = hidden_moments.within(begin, end);
    time.exposed_ns = time.communication_ns - time.hidden_ns;
    return time;
  }
};

/// One pass over a trace's spans, then the sums.
class Profiler {
 public:
  Profiler(const Trace& trace, std::optional<Rank> rank) : trace_(trace), rank_(rank) {}

  Profile run() {
    for (const Track& track : trace_.tracks)
      place_of_track_.push_back({track.rank, on_device(track) ? device_of(track) : DeviceNumber{}});
    take_spans();
    self_times();
    for (auto& [place, device] : devices_) device.settle();
    for (const auto& [place, device] : devices_) add_device(place, device);
    hide_collectives();
    for (auto& [key, use] : collectives_) profile_.collectives.push_back(use);
    for (auto& [key, use] : copies_) profile_.copies.push_back(use);
    add_steps();
    add_names(kernels_, profile_.kernels);
    add_names(operations_, profile_.operations);
    return std::move(profile_);
  }

 private:
  using Key = std::pair<NameId, Activity>;
  using Names = std::map<Key, NamedTime>;

  [[nodiscard]] bool asked(const Track& track) const { return !rank_ || track.rank == *rank_; }

  void take_spans() {
    const SpanTable& spans = trace_.spans;
    activity_.resize(spans.size());
    // What a name means on a track of a kind is asked once.
    std::map<std::pair<std::int32_t, std::int32_t>, Activity> told;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Track& track = trace_.track_of(spans.track[i]);
      activity_[i] = spans.activity[i];
      if (activity_[i] == Activity::unknown) {
        const auto [at, added] = told.try_emplace({spans.track[i].value, spans.name[i].value});
        if (added) at->second = activity_of(track, Activity::unknown, trace_.name_of(spans.name[i]));
        activity_[i] = at->second;
      }
      if (!asked(track)) continue;
      const std::int64_t begin = spans.begin_ns[i], end = begin + spans.duration_ns[i];
      const auto [window, added] = windows_.try_emplace(track.rank, Interval{begin, end});
      window->second = {std::min(window->second.begin, begin), std::max(window->second.end, end)};
      if (on_device(track)) take_device_span(i, track, {begin, end});
      if (is_collective(activity_[i])) take_collective(i, track);
    }
  }

  void take_device_span(std::size_t i, const Track& track, Interval when) {
    const Activity activity = activity_[i];
    const bool collective = is_collective(activity), copy = activity == Activity::copy || activity == Activity::fill;
    if (!collective && !copy && activity != Activity::kernel) return;
    const DevicePlace place = place_of_track_[static_cast<std::size_t>(trace_.spans.track[i].value)];
    Device& device = devices_[place];
    device.streams.insert(trace_.spans.track[i].value);
    device.all.push_back(when);
    (collective ? device.collectives : copy ? device.copies : device.compute).push_back(when);
    if (copy) {
      const Direction direction = direction_of(track, activity, trace_.name_of(trace_.spans.name[i]));
      CopyUse& use = copies_[{place, direction}];
      use.place = place;
      use.direction = direction;
      ++use.count;
      add(use.bytes, std::max<std::int64_t>(trace_.spans.bytes[i], 0));
      add(use.total_ns, when.end - when.begin);
    } else {
      // One kernel may do several kinds of collectives: NCCL's for sending and receiving.
      NamedTime& named = kernels_[{trace_.spans.name[i], collective ? Activity::other_collective : activity}];
      ++named.count;
      add(named.total_ns, when.end - when.begin);
      add(named.self_ns, when.end - when.begin);
    }
  }

  void take_collective(std::size_t i, const Track& track) {
    const bool on_host = !on_device(track);
    const DevicePlace place = place_of_track_[static_cast<std::size_t>(trace_.spans.track[i].value)];
    CollectiveUse& use = collectives_[{place, activity_[i], on_host}];
    use.place = place;
    use.kind = activity_[i];
    use.on_host = on_host;
    add(use.total_ns, trace_.spans.duration_ns[i]);
    add(use.bytes, std::max<std::int64_t>(trace_.spans.bytes[i], 0));
    calls_.push_back(i);
    if (is_further_part(i, track)) return;
    ++use.count;
    if (trace_.spans.bytes[i] <= 0 && activity_[i] != Activity::barrier) ++use.without_bytes;
  }

  /// Two spans of one op in one step and micro-step are parts of one call.
  [[nodiscard]] bool is_further_part(std::size_t i, const Track& track) {
    const SpanTable& s = trace_.spans;
    if (!s.op[i].valid() || trace_.header.plan_hash.empty()) return false;
    return !parts_seen_.insert({track.rank, s.op[i], s.phase[i], s.step[i], s.micro_step[i]}).second;
  }

  /// A moment of a thread belongs to the span begun last of those that run. Recorders' clocks are coarse and several,
  /// so that spans cross which were nested in truth.
  void self_times() {
    const SpanTable& spans = trace_.spans;
    std::vector<std::uint32_t> order;
    for (std::size_t i = 0; i < spans.size(); ++i)
      if (!on_device(trace_.track_of(spans.track[i]))) order.push_back(static_cast<std::uint32_t>(i));
    std::ranges::sort(order, {}, [&](std::uint32_t i) {
      return std::tuple(spans.track[i], spans.begin_ns[i], -spans.duration_ns[i], i);
    });
    std::vector<std::int64_t> self(spans.size(), 0);
    std::vector<std::uint32_t> open;  // by begin; some have ended
    std::int64_t now = 0;
    const auto advance = [&](std::int64_t until) {
      while (!open.empty()) {
        const std::uint32_t last = open.back();
        const std::int64_t end = spans.begin_ns[last] + spans.duration_ns[last];
        if (end > now) self[last] += std::min(end, until) - now;
        now = std::max(now, std::min(end, until));
        if (end > until) break;
        open.pop_back();
      }
      now = until;
    };
    constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();
    TrackId track;
    for (const std::uint32_t i : order) {
      if (spans.track[i] != track) {
        advance(kEver);
        open.clear();
        track = spans.track[i];
        now = spans.begin_ns[i];
      }
      advance(spans.begin_ns[i]);
      open.push_back(i);
    }
    advance(kEver);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Track& of = trace_.track_of(spans.track[i]);
      if (on_device(of) || !asked(of) || activity_[i] == Activity::recording) continue;
      NamedTime& named = operations_[{spans.name[i], activity_[i]}];
      ++named.count;
      add(named.total_ns, spans.duration_ns[i]);
      add(named.self_ns, self[i]);
    }
  }

  void add_device(const DevicePlace& place, const Device& device) {
    const Interval window = windows_.at(place.rank);
    DeviceUse use{.place = place,
                  .streams = static_cast<std::int64_t>(device.streams.size()),
                  .time = device.within(window.begin, window.end)};
    if (!device.busy_moments.empty()) {
      const auto& busy = device.busy_moments.intervals();
      use.idle_between_ns = busy.back().end - busy.front().begin - use.time.busy_ns;
    }
    profile_.devices.push_back(use);
  }

  void hide_collectives() {
    for (const std::size_t i : calls_) {
      const TrackId track = trace_.spans.track[i];
      if (!on_device(trace_.track_of(track))) continue;
      const DevicePlace place = place_of_track_[static_cast<std::size_t>(track.value)];
      const std::int64_t begin = trace_.spans.begin_ns[i], end = begin + trace_.spans.duration_ns[i];
      add(collectives_.at({place, activity_[i], false}).hidden_ns,
          devices_.at(place).compute_moments.within(begin, end));
    }
    for (auto& [key, use] : collectives_) use.exposed_ns = use.on_host ? 0 : use.total_ns - use.hidden_ns;
  }

  void add_steps() {
    std::map<std::pair<std::int32_t, DevicePlace>, DeviceStep> steps;
    const auto add = [&](Rank rank, std::int32_t number, std::int64_t begin, std::int64_t end) {
      for (auto at = devices_.lower_bound({rank, DeviceNumber{}});
           at != devices_.end() && at->first.rank == rank && steps.size() < kMostDeviceSteps; ++at)
        steps.try_emplace({number, at->first}, DeviceStep{at->first, number, begin, at->second.within(begin, end)});
    };
    const std::vector<MarkedStep> marked = marked_steps(trace_);
    for (const MarkedStep& step : marked) add(step.rank, step.step, step.begin_ns, step.end_ns);
    if (marked.empty()) {
      std::vector<StepTime> told = step_times(trace_);
      // Recordings that know nothing of steps have all spans in the first.
      if (told.size() == 1 && told.front().step == 0 && trace_.header.plan_hash.empty()) told.clear();
      for (const auto& [rank, window] : windows_)
        for (const StepTime& step : told) add(rank, step.step, step.begin_ns, step.end_ns);
    }
    for (const auto& [key, step] : steps) profile_.steps.push_back(step);
  }

  void add_names(const Names& names, std::vector<NamedTime>& into) const {
    for (const auto& [key, named] : names) {
      into.push_back(named);
      into.back().name = trace_.name_of(key.first);
      into.back().activity = key.second;
    }
    std::ranges::stable_sort(into, std::ranges::greater{}, &NamedTime::self_ns);
  }

  const Trace& trace_;
  std::optional<Rank> rank_;
  std::vector<DevicePlace> place_of_track_;
  std::vector<Activity> activity_;  // by span
  std::map<Rank, Interval> windows_;
  std::map<DevicePlace, Device> devices_;
  std::map<std::tuple<DevicePlace, Activity, bool>, CollectiveUse> collectives_;
  std::map<std::pair<DevicePlace, Direction>, CopyUse> copies_;
  std::vector<std::size_t> calls_;  // spans
  std::set<std::tuple<Rank, OpId, Phase, std::int32_t, std::int32_t>> parts_seen_;
  Names kernels_, operations_;
  Profile profile_;
};

}  // namespace

DeviceNumber device_of(const Track& track) {
  std::int32_t number = -1;
  if (starts(track.name, "GPU ")) {
    const std::string_view digits = std::string_view(track.name).substr(4);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc() || number < 0)
      number = -1;
  }
  return DeviceNumber{number};
}

Activity activity_of(const Track& track, Activity said, std::string_view name) {
  if (said != Activity::unknown) return said;
  if (!on_device(track)) return Activity::operation;
  if (starts(name, "nccl") || starts(name, "rccl") || track.stream == Stream::communication) return collective_of(name);
  if (starts(name, "Memcpy") || starts(name, "[CUDA memcpy")) return Activity::copy;
  if (starts(name, "Memset") || starts(name, "[CUDA memset")) return Activity::fill;
  return track.stream == Stream::copy_in || track.stream == Stream::copy_out ? Activity::copy : Activity::kernel;
}

Profile profile(const Trace& trace, std::optional<Rank> rank) {
  return Profiler(trace, rank).run();
}

std::vector<Rank> ranks_of(const Trace& trace) {
  std::set<Rank> ranks;
  std::vector<bool> used(trace.tracks.size());
  for (const TrackId track : trace.spans.track) used[static_cast<std::size_t>(track.value)] = true;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) ranks.insert(trace.tracks[i].rank);
  Rank last;
  for (const Rank rank : trace.memory.rank) {
    if (rank != last) ranks.insert(rank);
    last = rank;
  }
  for (const Counter& counter : trace.counters) ranks.insert(counter.rank);
  return {ranks.begin(), ranks.end()};
}

std::vector<MarkedStep> marked_steps(const Trace& trace) {
  constexpr std::string_view kMark = "ProfilerStep#";
  std::map<NameId, std::int32_t> names;
  for (std::size_t i = 0; i < trace.names.size(); ++i) {
    const std::string& name = trace.names[i];
    std::int32_t step = 0;
    if (!starts(name, kMark)) continue;
    if (std::from_chars(name.data() + kMark.size(), name.data() + name.size(), step).ec == std::errc())
      names.emplace(NameId{static_cast<std::int32_t>(i)}, step);
  }
  std::vector<MarkedStep> steps;
  if (names.empty()) return steps;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const auto at = names.find(trace.spans.name[i]);
    const Track& track = trace.track_of(trace.spans.track[i]);
    if (at == names.end() || trace.spans.activity[i] == Activity::mark || on_device(track)) continue;
    const std::int64_t begin = trace.spans.begin_ns[i];
    steps.push_back({track.rank, at->second, begin, begin + trace.spans.duration_ns[i]});
  }
  std::ranges::stable_sort(steps, {}, [](const MarkedStep& step) { return std::pair(step.rank, step.begin_ns); });
  return steps;
}

}  // namespace shard
