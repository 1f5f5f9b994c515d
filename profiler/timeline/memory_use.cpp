// One walk over a rank's events in their order, and one over those before its peak.
#include "profiler/timeline/memory_use.h"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/base/wrapping.h"

namespace shard::profiler {
namespace {

struct Walk {
  std::int64_t live = 0, peak = 0, peak_ns = 0;
  std::size_t peak_event = 0;
};

std::string call_of(const Trace& trace, StackId stack) {
  if (!stack.valid()) return "";
  const FrameId frame = trace.stack_of(stack).frame;
  return frame.valid() ? std::string(trace.name_of(trace.frame_of(frame).function)) : "";
}

std::vector<HeldBlocks> held_at_event(const Trace& trace, Rank rank, std::size_t last) {
  std::map<std::int32_t, std::size_t> live;  // by buffer
  for (std::size_t i = 0; i <= last; ++i) {
    if (trace.memory.rank[i] != rank || trace.memory.memory[i] != Memory::device) continue;
    if (trace.memory.delta_bytes[i] > 0) {
      live[trace.memory.buffer[i].value] = i;
    } else {
      live.erase(trace.memory.buffer[i].value);
    }
  }
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> groups;
  for (const auto& [buffer, event] : live)
    ++groups[{call_of(trace, trace.memory.stack[event]), trace.memory.delta_bytes[event]}];
  std::vector<HeldBlocks> held;
  for (const auto& [key, blocks] : groups) held.push_back({key.first, key.second, blocks});
  std::ranges::stable_sort(held, std::ranges::greater{}, &HeldBlocks::bytes);
  return held;
}

/// Begin and end of spans and memory events.
void set_extent(const Trace& trace, MemoryUse& use) {
  use.begin_ns = use.end_ns = use.peak_ns;
  const auto take = [&](std::int64_t from, std::int64_t to) {
    use.begin_ns = std::min(use.begin_ns, from);
    use.end_ns = std::max(use.end_ns, to);
  };
  for (std::size_t i = 0; i < trace.spans.size(); ++i)
    take(trace.spans.begin_ns[i], trace.spans.begin_ns[i] + trace.spans.duration_ns[i]);
  for (const std::int64_t time : trace.memory.time_ns) take(time, time);
}

}  // namespace

std::optional<MemoryUse> memory_use(const Trace& trace, std::size_t parts) {
  std::map<Rank, Walk> walks;
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    if (trace.memory.memory[i] != Memory::device) continue;
    Walk& walk = walks[trace.memory.rank[i]];
    walk.live = wrapping_sum(walk.live, trace.memory.delta_bytes[i]);
    if (walk.live > walk.peak) walk = {walk.live, walk.live, trace.memory.time_ns[i], i};
  }
  const auto most = std::ranges::max_element(walks, {}, [](const auto& each) { return each.second.peak; });
  if (most == walks.end() || most->second.peak == 0) return std::nullopt;
  MemoryUse use;
  use.rank = most->first;
  use.peak_bytes = most->second.peak;
  use.peak_ns = most->second.peak_ns;
  use.at_end_bytes = most->second.live;
  use.held = held_at_event(trace, use.rank, most->second.peak_event);
  set_extent(trace, use);
  use.series.assign(std::max<std::size_t>(parts, 1), 0);
  const double length = std::max(1.0, static_cast<double>(use.end_ns - use.begin_ns));
  std::int64_t live = 0;
  std::size_t part = 0;
  const auto go_to = [&](std::size_t next) {
    for (; part < next; ++part) use.series[part + 1] = std::max(use.series[part + 1], live);
  };
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    if (trace.memory.memory[i] != Memory::device || trace.memory.rank[i] != use.rank) continue;
    const double at = static_cast<double>(trace.memory.time_ns[i] - use.begin_ns) / length;
    const auto count = static_cast<double>(use.series.size());
    go_to(std::min(use.series.size() - 1, static_cast<std::size_t>(std::max(0.0, at * count))));
    live = wrapping_sum(live, trace.memory.delta_bytes[i]);
    use.series[part] = std::max(use.series[part], live);
  }
  go_to(use.series.size() - 1);
  return use;
}

}  // namespace shard::profiler
