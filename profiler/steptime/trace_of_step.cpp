// Time since the epoch stays the clock of the trace: the step begins when its first piece was given.
#include <algorithm>
#include <cmath>
#include <map>

#include "profiler/steptime/timeline.h"

namespace shard::steptime {
namespace {

std::int64_t nanoseconds(Seconds time) {
  return std::llround(time.count() * 1e9);
}

/// From the dry run's clock to the prediction's, both since the epoch.
class Clock {
 public:
  explicit Clock(const std::vector<HostMoment>& host) : host_(host), begin_ns_(host.front().real_ns) {}

  [[nodiscard]] std::int64_t begin_ns() const { return begin_ns_; }
  [[nodiscard]] std::int64_t of(std::int64_t real_ns) const {
    const auto after = std::ranges::upper_bound(host_, real_ns, {}, &HostMoment::real_ns);
    if (after == host_.begin()) return real_ns + shift(host_.front());
    if (after == host_.end()) return real_ns + shift(host_.back());
    const HostMoment &from = *std::prev(after), &to = *after;
    const double share = static_cast<double>(real_ns - from.real_ns) / static_cast<double>(to.real_ns - from.real_ns);
    return begin_ns_ + nanoseconds(from.predicted + (to.predicted - from.predicted) * share);
  }

 private:
  [[nodiscard]] std::int64_t shift(const HostMoment& moment) const {
    return begin_ns_ + nanoseconds(moment.predicted) - moment.real_ns;
  }

  const std::vector<HostMoment>& host_;
  std::int64_t begin_ns_;
};

Activity activity_of(const Shown& shown) {
  if (shown.kind == Work::copy) return Activity::copy;
  if (shown.kind == Work::fill) return Activity::fill;
  if (shown.kind != Work::collective) return Activity::kernel;
  if (shown.name.ends_with("AllGather")) return Activity::all_gather;
  if (shown.name.ends_with("ReduceScatter")) return Activity::reduce_scatter;
  if (shown.name.ends_with("AllReduce")) return Activity::all_reduce;
  if (shown.name.ends_with("SendRecv")) return Activity::send_receive;
  if (shown.name.ends_with("AllToAll")) return Activity::all_to_all;
  return Activity::other_collective;
}

}  // namespace

void add_to(Trace& trace, const Forecast& forecast, const TimelineOf& of) {
  if (forecast.host.empty() || trace.header.wall_ns == 0) return;
  const Clock clock(forecast.host);
  for (std::int64_t& time : trace.memory.time_ns) time = clock.of(time);
  trace.header.clock_ns = trace.header.wall_ns = trace.memory.empty() ? clock.begin_ns() : trace.memory.time_ns.front();
  trace.header.kind = TraceKind::predicted;
  trace.header.metadata["cluster"] = of.card;
  trace.header.metadata["step"] = "of laws of kernels, " + std::to_string(forecast.seconds.count() * 1e3) + " ms";
  const Rank rank = trace.memory.empty() ? Rank{0} : trace.memory.rank.front();
  std::map<std::int64_t, TrackId> tracks;
  std::map<std::string, NameId> names;
  std::vector<const Shown*> order;
  for (const Shown& each : forecast.shown) order.push_back(&each);
  std::ranges::stable_sort(order, {}, [](const Shown* each) { return each->begin.count(); });
  for (const Shown* const each : order) {
    const auto [track, new_track] = tracks.try_emplace(each->stream, static_cast<std::int32_t>(trace.tracks.size()));
    if (new_track)
      trace.tracks.push_back(
          {.rank = rank, .kind = TrackKind::other, .name = "stream " + std::to_string(tracks.size())});
    const auto [name, new_name] = names.try_emplace(each->name, static_cast<std::int32_t>(trace.names.size()));
    if (new_name) trace.names.push_back(each->name);
    trace.spans.push_back({.track = track->second,
                           .begin_ns = clock.begin_ns() + nanoseconds(each->begin),
                           .duration_ns = nanoseconds(each->end - each->begin),
                           .name = name->second,
                           .step = static_cast<std::int32_t>(std::max<std::int64_t>(forecast.step - 1, 0)),
                           .bytes = each->bytes,
                           .activity = activity_of(*each)});
  }
}

}  // namespace shard::steptime
