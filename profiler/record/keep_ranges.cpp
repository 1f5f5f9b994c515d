// Stretches of time that do not overlap, and a search in them for each event.
#include "profiler/record/keep_ranges.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_set>
#include <utility>
#include <vector>

namespace shard::profiler {
namespace {

struct Stretch {
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// By begin, joined where they touch.
std::vector<Stretch> stretches_of(SpoolContent& content, const WantedRanges& wanted) {
  std::vector<Event*> ranges;
  for (Event& event : content.events)
    if (event.kind == EventKind::range && (event.flags & kFromHost) == 0) ranges.push_back(&event);
  std::ranges::stable_sort(ranges, {}, [](const Event* event) { return event->begin_ns; });
  const bool has_steps = wanted.steps && std::ranges::any_of(ranges, [](const Event* e) { return e->extra > 0; });
  RangeChooser chooser(wanted);
  std::vector<Stretch> stretches;
  for (Event* const event : ranges) {
    if (!has_steps) {
      const auto chosen = chooser.begins(content.name_of(event->name));
      if (!chosen) continue;
      event->extra = static_cast<std::uint64_t>(chosen->step);
    } else if (event->extra == 0) {
      continue;
    }
    if (!stretches.empty() && event->begin_ns <= stretches.back().end_ns) {
      stretches.back().end_ns = std::max(stretches.back().end_ns, event->end_ns);
    } else {
      stretches.push_back({event->begin_ns, event->end_ns});
    }
  }
  return stretches;
}

}  // namespace

void keep_ranges(SpoolContent& content, const WantedRanges& wanted) {
  const std::vector<Stretch> stretches = stretches_of(content, wanted);
  const auto inside = [&](const Event& event) {
    const auto behind = std::ranges::upper_bound(stretches, event.begin_ns, {}, &Stretch::begin_ns);
    return behind != stretches.begin() && event.begin_ns <= std::prev(behind)->end_ns;
  };
  std::unordered_set<std::uint32_t> calls;
  for (const Event& event : content.events)
    if (event.kind == EventKind::call && inside(event)) calls.insert(event.correlation);
  std::erase_if(content.events, [&](const Event& event) {
    switch (event.kind) {
      case EventKind::kernel:
      case EventKind::copy:
      case EventKind::fill: return !calls.contains(event.correlation);
      case EventKind::call:
      case EventKind::wait:
      case EventKind::range:
      case EventKind::mark: return !inside(event);
      case EventKind::none:
      case EventKind::acquired:
      case EventKind::released:
      case EventKind::pool:
      case EventKind::external:
      case EventKind::node_made:
      case EventKind::node_cloned:
      case EventKind::sample:
      case EventKind::clocks:
      case EventKind::lost:
      case EventKind::device: return false;
    }
    return false;
  });
}

}  // namespace shard::profiler
