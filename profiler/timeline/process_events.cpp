// Sorted, made unique, put on one clock, and looked up by number.
#include "profiler/timeline/process_events.h"

#include <algorithm>
#include <cstring>

namespace shard::profiler {
namespace {

bool is_on_device_clock(const Event& event) {
  if ((event.flags & kFromHost) != 0) return false;
  switch (event.kind) {
    case EventKind::kernel:
    case EventKind::copy:
    case EventKind::fill:
    case EventKind::acquired:
    case EventKind::released:
    case EventKind::pool:
    case EventKind::call:
    case EventKind::wait:
    case EventKind::range:
    case EventKind::mark:
    case EventKind::sample: return true;
    case EventKind::none:
    case EventKind::external:
    case EventKind::node_made:
    case EventKind::node_cloned:
    case EventKind::clocks:
    case EventKind::lost:
    case EventKind::device: return false;
  }
  return false;
}

/// Of what may be delivered twice: a driver that flushes its buffers at two places. Two memory events or ranges of
/// equal content are two.
bool is_once(EventKind kind) {
  return kind == EventKind::kernel || kind == EventKind::copy || kind == EventKind::fill || kind == EventKind::call ||
         kind == EventKind::wait || kind == EventKind::acquired || kind == EventKind::released;
}

/// Of the host's clock, which no file is believed: sums and differences of two stay within 64 bits, as those of the
/// map.
std::int64_t within_reach(std::int64_t time_ns) {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 60;
  return std::clamp(time_ns, -kFarthest, kFarthest);
}

struct ByContent {
  bool operator()(const Event& a, const Event& b) const { return std::memcmp(&a, &b, sizeof(Event)) < 0; }
};

}  // namespace

ProcessEvents::ProcessEvents(const SpoolContent& content) {
  keep_once(content);
  place();
  join();
}

void ProcessEvents::keep_once(const SpoolContent& content) {
  std::vector<Event> once;
  for (const Event& event : content.events) {
    switch (event.kind) {
      case EventKind::clocks: looks_.push_back({event.begin_ns, event.end_ns, event.bytes}); break;
      case EventKind::external:
      case EventKind::node_made:
      case EventKind::node_cloned: belongings_.push_back(event); break;
      case EventKind::none:
      case EventKind::lost: break;
      case EventKind::kernel:
      case EventKind::copy:
      case EventKind::fill:
      case EventKind::acquired:
      case EventKind::released:
      case EventKind::pool:
      case EventKind::call:
      case EventKind::wait:
      case EventKind::range:
      case EventKind::mark:
      case EventKind::sample:
      case EventKind::device: (is_once(event.kind) ? once : events_).push_back(event); break;
    }
  }
  std::sort(once.begin(), once.end(), ByContent{});
  const auto last = std::unique(once.begin(), once.end());
  twice_ = once.end() - last;
  events_.insert(events_.end(), once.begin(), last);
}

void ProcessEvents::place() {
  // Looks of several threads lie in several blocks; they follow each other by the host's clock.
  std::stable_sort(looks_.begin(), looks_.end(),
                   [](const ClockLook& a, const ClockLook& b) { return a.host_before_ns < b.host_before_ns; });
  const ClockMap map(looks_);
  for (Event& event : events_) {
    if (!is_on_device_clock(event)) {
      event.begin_ns = within_reach(event.begin_ns);
      event.end_ns = within_reach(event.end_ns);
      continue;
    }
    const HostTime begin = map.host(event.begin_ns), end = map.host(event.end_ns);
    const bool has_end = event.end_ns != 0 || event.begin_ns == 0;
    clock_bound_ns_ = std::max({clock_bound_ns_, begin.bound_ns, has_end ? end.bound_ns : 0});
    event.begin_ns = begin.time_ns;
    event.end_ns = has_end ? std::max(begin.time_ns, end.time_ns) : begin.time_ns;
  }
  std::stable_sort(events_.begin(), events_.end(),
                   [](const Event& a, const Event& b) { return a.begin_ns < b.begin_ns; });
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    // A runtime call makes a driver call of the same correlation: the outer one is what the program said.
    if (event.kind == EventKind::call && event.correlation != 0) calls_.try_emplace(event.correlation, i);
    if (event.kind == EventKind::range && event.detail == static_cast<std::uint8_t>(RangeOf::phase))
      phases_[PushedOp::of(event.id).rank].push_back({event.begin_ns, event.end_ns, PhaseStep::of(event.extra)});
  }
}

void ProcessEvents::join() {
  for (const Event& event : belongings_) {
    if (event.kind == EventKind::external && event.detail == static_cast<std::uint8_t>(Pushed::ours))
      pushed_.try_emplace(event.correlation, event.id);
    if (event.kind == EventKind::node_made) node_pushed_.try_emplace(event.id, event.extra);
    if (event.kind == EventKind::node_cloned && event.id != event.extra)
      node_origin_.try_emplace(event.id, event.extra);
  }
}

const Event* ProcessEvents::call_of(const Event& work) const {
  const auto at = calls_.find(work.correlation);
  return work.correlation == 0 || at == calls_.end() ? nullptr : &events_[at->second];
}

PhaseStep ProcessEvents::phase_at(std::int32_t rank, std::int64_t time_ns) const {
  const auto of_rank = phases_.find(rank);
  if (of_rank == phases_.end()) return {};
  const std::vector<PhaseRange>& phases = of_rank->second;
  const auto behind =
      std::upper_bound(phases.begin(), phases.end(), time_ns,
                       [](std::int64_t time, const PhaseRange& phase) { return time < phase.begin_ns; });
  if (behind == phases.begin() || std::prev(behind)->end_ns < time_ns) return {};
  return std::prev(behind)->at;
}

std::optional<WorkOf> ProcessEvents::owner_of(const Event& event) const {
  std::optional<std::uint64_t> id;
  // Nodes of a graph that runs are copies of those that were captured, perhaps copies of copies.
  const bool works = event.kind == EventKind::kernel || event.kind == EventKind::copy || event.kind == EventKind::fill;
  std::uint64_t node = works ? event.extra : 0;
  for (int hops = 0; node != 0 && hops < 8; ++hops) {
    if (const auto at = node_pushed_.find(node); at != node_pushed_.end()) {
      id = at->second;
      break;
    }
    const auto origin = node_origin_.find(node);
    if (origin == node_origin_.end()) break;
    node = origin->second;
  }
  if (event.kind == EventKind::range && event.detail != static_cast<std::uint8_t>(RangeOf::others)) id = event.id;
  if (!id)
    if (const auto at = pushed_.find(event.correlation); event.correlation != 0 && at != pushed_.end()) id = at->second;
  if (!id) return std::nullopt;
  const PushedOp pushed = PushedOp::of(*id);
  const Event* const call = call_of(event);
  return WorkOf{pushed, phase_at(pushed.rank, call != nullptr ? call->begin_ns : event.begin_ns)};
}

}  // namespace shard::profiler
