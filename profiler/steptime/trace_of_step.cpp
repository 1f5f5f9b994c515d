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

/// From the dry run's clock to the prediction's, both since the epoch. What was before and after the step took as long
/// as the dry run did, which says nothing: each is shown in a quarter of the step's time, or less.
class Clock {
 public:
  Clock(const Forecast& forecast, std::int64_t first_ns, std::int64_t last_ns)
      : host_(forecast.host),
        begin_ns_(host_.front().real_ns),
        before_(scale_of(begin_ns_ - first_ns, forecast.seconds)),
        after_(scale_of(last_ns - host_.back().real_ns, forecast.seconds)) {}

  [[nodiscard]] std::int64_t begin_ns() const { return begin_ns_; }
  [[nodiscard]] std::int64_t of(std::int64_t real_ns) const {
    const auto after = std::ranges::upper_bound(host_, real_ns, {}, &HostMoment::real_ns);
    if (after == host_.begin()) return beside(host_.front(), real_ns, before_);
    if (after == host_.end()) return beside(host_.back(), real_ns, after_);
    const HostMoment &from = *std::prev(after), &to = *after;
    const double share = static_cast<double>(real_ns - from.real_ns) / static_cast<double>(to.real_ns - from.real_ns);
    return begin_ns_ + nanoseconds(from.predicted + (to.predicted - from.predicted) * share);
  }

 private:
  static double scale_of(std::int64_t real_ns, Seconds step) {
    constexpr double kShare = 0.25;
    return real_ns <= 0 ? 1 : std::min(1.0, kShare * step.count() * 1e9 / static_cast<double>(real_ns));
  }
  [[nodiscard]] std::int64_t beside(const HostMoment& moment, std::int64_t real_ns, double scale) const {
    return begin_ns_ + nanoseconds(moment.predicted) +
           std::llround(static_cast<double>(real_ns - moment.real_ns) * scale);
  }

  const std::vector<HostMoment>& host_;
  std::int64_t begin_ns_;
  double before_, after_;
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

/// What a stream is for, by most of what runs on it.
Stream stream_of(std::int64_t stream, const std::vector<Shown>& shown) {
  std::int64_t all = 0, exchanges = 0, copies = 0;
  for (const Shown& each : shown) {
    if (each.stream != stream) continue;
    ++all;
    exchanges += each.kind == Work::collective ? 1 : 0;
    copies += each.kind == Work::copy ? 1 : 0;
  }
  if (2 * exchanges > all) return Stream::communication;
  return 2 * copies > all ? Stream::copy_in : Stream::compute;
}

}  // namespace

void add_to(Trace& trace, const Forecast& forecast, const TimelineOf& of) {
  if (forecast.host.empty() || trace.header.wall_ns == 0) return;
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const std::int64_t time : trace.memory.time_ns) first = std::min(first, time), last = std::max(last, time);
  if (first > last) first = last = forecast.host.front().real_ns;
  const Clock clock(forecast, first, last);
  for (std::int64_t& time : trace.memory.time_ns) time = clock.of(time);
  for (Counter& counter : trace.counters) counter.time_ns = clock.of(counter.time_ns);
  trace.header.clock_ns = trace.header.wall_ns = trace.memory.empty() ? clock.begin_ns() : trace.memory.time_ns.front();
  trace.header.kind = TraceKind::predicted;
  trace.header.metadata["cluster"] = of.card;
  trace.header.metadata["times"] = "of the step by laws of kernels, of the rest those of the dry run, made short";
  const Rank rank = trace.memory.empty() ? Rank{0} : trace.memory.rank.front();
  std::map<std::int64_t, TrackId> tracks;
  std::map<std::string, NameId> names;
  std::vector<const Shown*> order;
  for (const Shown& each : forecast.shown) order.push_back(&each);
  std::ranges::stable_sort(order, {}, [](const Shown* each) { return each->begin.count(); });
  for (const Shown* const each : order) {
    const auto [track, new_track] = tracks.try_emplace(each->stream, static_cast<std::int32_t>(trace.tracks.size()));
    if (new_track)
      trace.tracks.push_back({.rank = rank,
                              .kind = TrackKind::stream,
                              .stream = stream_of(each->stream, forecast.shown),
                              .name = "GPU 0 stream " + std::to_string(tracks.size())});
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
