// Gaps of a device, the launch that ended each (an arrow of the trace), and what its host threads did before.
#include "traces/idle.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "traces/base/moments.h"

namespace shard {
namespace {

using std::string_view;

bool is_device_queue(const Track& track) {
  return track.kind == TrackKind::stream && track.stream != Stream::host;
}

bool names(string_view text, string_view word) {
  return text.find(word) != string_view::npos;
}

/// What a host thread's span keeps it from launching for, if it is one of these.
std::optional<IdleCause> kept_by(Activity activity, string_view name) {
  if (is_collective(activity)) return IdleCause::host_collective;
  if (names(name, "DataLoader") || (names(name, "dataloader.py") && names(name, "__next__")))
    return IdleCause::data_loading;
  if (activity != Activity::runtime) return std::nullopt;
  if (names(name, "Synchronize") || name == "cudaMemcpy" || name == "cudaMemcpy2D" ||
      name.starts_with("cuMemcpyDtoH_") || name.starts_with("cuMemcpyHtoD_"))
    return IdleCause::host_sync;
  for (const string_view word : {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cuMemAlloc", "cuMemFree", "cuMemCreate",
                                 "cuMemMap", "cuMemUnmap", "cuMemRelease", "cuMemSetAccess", "cuMemAddress"})
    if (name.starts_with(word)) return IdleCause::allocation;
  return std::nullopt;
}

struct LaunchCall {
  std::int64_t begin = 0, end = 0;
};

/// What ran on a device, and what its rank's threads did.
struct DeviceWork {
  std::vector<Interval> all, compute, collectives;
  struct Work {
    std::int64_t begin = 0;
    std::size_t span = 0;
  };
  std::vector<Work> work;  // by begin
};

using Kept = std::array<std::vector<Interval>, kIdleCauseCount>;

class Finder {
 public:
  Finder(const Trace& trace, std::optional<Rank> rank) : trace_(trace), rank_(rank) {}

  IdleTimes run() {
    take_launches();
    take_spans();
    for (auto& [rank, kept] : kept_)
      for (int c = 0; c < kIdleCauseCount; ++c)
        moments_[rank][static_cast<std::size_t>(c)] = Moments(std::move(kept[static_cast<std::size_t>(c)]));
    for (const MarkedStep& step : marked_steps(trace_)) steps_[step.rank].push_back({step.begin_ns, step.end_ns});
    IdleTimes idle;
    for (auto& [place, device] : devices_) idle.devices.push_back(of_device(place, device));
    return idle;
  }

 private:
  /// Arrows to spans of devices, by where and when they end; and the threads that launch.
  void take_launches() {
    for (const Flow& flow : trace_.flows) {
      const Track &from = trace_.track_of(flow.from_track), &to = trace_.track_of(flow.to_track);
      if (is_device_queue(from) || !is_device_queue(to)) continue;
      launched_at_[{flow.to_track, flow.to_ns}] = flow;
      launching_.insert(flow.from_track);
    }
  }

  void take_spans() {
    const SpanTable& spans = trace_.spans;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Track& track = trace_.track_of(spans.track[i]);
      if (rank_ && track.rank != *rank_) continue;
      const string_view name = trace_.name_of(spans.name[i]);
      const Activity activity = activity_of(track, spans.activity[i], name);
      const Interval when{spans.begin_ns[i], spans.begin_ns[i] + spans.duration_ns[i]};
      const auto [window, added] = windows_.try_emplace(track.rank, when);
      window->second = {std::min(window->second.begin, when.begin), std::max(window->second.end, when.end)};
      if (!is_device_queue(track)) {
        if (!launching_.contains(spans.track[i])) continue;
        if (activity == Activity::runtime) calls_[{spans.track[i], when.begin}] = when.end;
        if (const auto cause = kept_by(activity, name))
          kept_[track.rank][static_cast<std::size_t>(*cause)].push_back(when);
        continue;
      }
      const bool collective = is_collective(activity), compute = activity == Activity::kernel;
      if (!collective && !compute && activity != Activity::copy && activity != Activity::fill) continue;
      DeviceWork& device = devices_[{track.rank, device_of(track)}];
      device.all.push_back(when);
      if (collective) device.collectives.push_back(when);
      if (compute) device.compute.push_back(when);
      device.work.push_back({when.begin, i});
    }
  }

  [[nodiscard]] std::optional<LaunchCall> launch_of(std::size_t span) const {
    const auto at = launched_at_.find({trace_.spans.track[span], trace_.spans.begin_ns[span]});
    if (at == launched_at_.end()) return std::nullopt;
    const Flow& flow = at->second;
    const auto call = calls_.find({flow.from_track, flow.from_ns});
    return LaunchCall{flow.from_ns, call == calls_.end() ? flow.from_ns : call->second};
  }

  DeviceIdle of_device(const DevicePlace& place, DeviceWork& device) {
    DeviceIdle idle{.place = place};
    const Moments busy(std::move(device.all)), compute(std::move(device.compute)),
        collectives(std::move(device.collectives));
    std::ranges::sort(device.work, {}, &DeviceWork::Work::begin);
    const auto steps = steps_.find(place.rank);
    idle.of_steps = steps != steps_.end();
    const Moments windows(idle.of_steps ? steps->second : std::vector<Interval>{windows_.at(place.rank)});
    const Moments hidden = both(compute, collectives);
    for (const Interval& window : windows.intervals()) {
      idle.window_ns += window.end - window.begin;
      idle.exposed_ns += collectives.within(window.begin, window.end) - hidden.within(window.begin, window.end);
      add_gaps(place.rank, window, busy, device, idle);
    }
    return idle;
  }

  void add_gaps(Rank rank, Interval window, const Moments& busy, const DeviceWork& device, DeviceIdle& idle) const {
    auto next = std::ranges::upper_bound(busy.intervals(), window.begin, {}, &Interval::end);
    std::int64_t from = window.begin;
    // A gap that the window's begin cuts began before.
    std::int64_t since = next == busy.intervals().begin() ? window.begin : std::prev(next)->end;
    for (;; ++next) {
      const bool any = next != busy.intervals().end();
      const std::int64_t until = any ? std::min(next->begin, window.end) : window.end;
      if (until > from) add_gap(rank, {from, until}, since, any ? next->begin : 0, any, device, idle);
      if (!any || next->begin >= window.end) return;
      from = std::max(next->end, window.begin);
      since = next->end;
    }
  }

  /// `since`: when the device fell idle; `next`: when its next work begins, in or after the gap.
  void add_gap(Rank rank, Interval gap, std::int64_t since, std::int64_t next, bool any, const DeviceWork& device,
               DeviceIdle& idle) const {
    const auto put = [&](IdleCause cause, std::int64_t ns) {
      idle.by_cause[static_cast<std::size_t>(cause)] += ns;
      idle.idle_ns += ns;
    };
    const std::int64_t length = gap.end - gap.begin;
    if (!any) return put(IdleCause::nothing_left, length);
    const auto work = std::ranges::lower_bound(device.work, next, {}, &DeviceWork::Work::begin);
    const std::optional<LaunchCall> launch = launch_of(work->span);
    if (!launch) return put(IdleCause::not_known, length);
    const std::int64_t launched = std::clamp(launch->end, gap.begin, gap.end);
    put(IdleCause::on_device, gap.end - launched);
    std::int64_t rest = launched - gap.begin;
    const auto of_rank = moments_.find(rank);
    if (of_rank == moments_.end()) return put(IdleCause::launch_bound, rest);
    const auto within = [&](IdleCause cause, std::int64_t from) {
      return of_rank->second[static_cast<std::size_t>(cause)].within(from, launched);
    };
    for (const IdleCause cause : {IdleCause::data_loading, IdleCause::allocation, IdleCause::host_collective}) {
      const std::int64_t ns = std::min(rest, within(cause, gap.begin));
      put(cause, ns);
      rest -= ns;
    }
    // Whoever waits for a device returns when that is idle already: all until the next launch comes of the wait.
    const bool waited = within(IdleCause::host_sync, std::min(since, launched)) > 0;
    put(waited ? IdleCause::host_sync : IdleCause::launch_bound, rest);
  }

  const Trace& trace_;
  std::optional<Rank> rank_;
  std::map<std::pair<TrackId, std::int64_t>, Flow> launched_at_;
  std::set<TrackId> launching_;
  std::map<std::pair<TrackId, std::int64_t>, std::int64_t> calls_;  // ends, by thread and begin
  std::map<Rank, Interval> windows_;
  std::map<Rank, std::vector<Interval>> steps_;
  std::map<DevicePlace, DeviceWork> devices_;
  std::map<Rank, Kept> kept_;
  std::map<Rank, std::array<Moments, kIdleCauseCount>> moments_;
};

/// Collectives of each rank in order: where all called the same, the n-th of one is the n-th of all.
std::vector<CollectiveWait> waits_of(const Trace& trace) {
  std::map<Rank, std::vector<std::size_t>> calls;
  const SpanTable& spans = trace.spans;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Track& track = trace.track_of(spans.track[i]);
    if (is_device_queue(track) && is_collective(activity_of(track, spans.activity[i], trace.name_of(spans.name[i]))))
      calls[track.rank].push_back(i);
  }
  if (calls.size() < 2) return {};
  for (auto& [rank, of] : calls) std::ranges::sort(of, {}, [&](std::size_t i) { return spans.begin_ns[i]; });
  const std::vector<std::size_t>& first = calls.begin()->second;
  for (const auto& [rank, of] : calls)
    if (!std::ranges::equal(of, first, [&](std::size_t a, std::size_t b) {
          return spans.activity[a] == spans.activity[b] && spans.bytes[a] == spans.bytes[b];
        }))
      return {};
  std::map<std::pair<Rank, Rank>, std::int64_t> sums;
  for (std::size_t n = 0; n < first.size(); ++n) {
    const auto begin = [&](const auto& of) { return spans.begin_ns[of.second[n]]; };
    const auto last = std::ranges::max_element(calls, {}, begin);
    for (const auto& of : calls) {
      const std::int64_t early = std::min(begin(*last) - begin(of), spans.duration_ns[of.second[n]]);
      if (early > 0) sums[{of.first, last->first}] += early;
    }
  }
  std::vector<CollectiveWait> waits;
  for (const auto& [ranks, ns] : sums) waits.push_back({ranks.first, ranks.second, ns});
  std::ranges::stable_sort(waits, std::ranges::greater{}, &CollectiveWait::wait_ns);
  return waits;
}

}  // namespace

IdleTimes idle_time(const Trace& trace, std::optional<Rank> rank) {
  if (trace.header.kind != TraceKind::measured) return {};
  IdleTimes idle = Finder(trace, rank).run();
  idle.waits = waits_of(trace);
  if (rank) std::erase_if(idle.waits, [&](const CollectiveWait& wait) { return wait.rank != *rank; });
  return idle;
}

}  // namespace shard
