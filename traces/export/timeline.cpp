// Running sums over memory events, and names for lanes.
#include "traces/export/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shard {

std::string lane_name(const Track& track, std::int32_t lane) {
  std::string name = track.name;
  if (name.empty()) {
    switch (track.kind) {
      case TrackKind::stream: name = to_string(track.stream); break;
      case TrackKind::memory: name = std::string(to_string(track.memory)) + " memory"; break;
      case TrackKind::other: name = "other"; break;
    }
  }
  return lane == 0 ? name : name + " " + std::to_string(lane + 1);
}

std::vector<MemoryCurve> memory_curves(const Trace& trace) {
  struct Building {
    MemoryCurve curve;
    std::set<Category> categories;
    std::uint64_t live = 0;  // sums of a hostile file wrap
    std::array<std::uint64_t, kCategoryCount> by_category{};
  };
  std::map<std::pair<Rank, Memory>, Building> building;
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    const MemoryEvent event = trace.memory[i];
    Building& b = building[{event.rank, event.memory}];
    std::uint64_t& category = b.by_category[static_cast<std::size_t>(event.category)];
    category += static_cast<std::uint64_t>(event.delta_bytes);
    b.live += static_cast<std::uint64_t>(event.delta_bytes);
    b.categories.insert(event.category);
    std::vector<MemorySample>& samples = b.curve.samples;
    const std::int64_t time = samples.empty() ? event.time_ns : std::max(event.time_ns, samples.back().time_ns);
    samples.push_back({time, static_cast<std::int64_t>(b.live), event.category, static_cast<std::int64_t>(category)});
  }
  std::vector<MemoryCurve> curves;
  for (auto& [key, b] : building) {
    b.curve.rank = key.first;
    b.curve.memory = key.second;
    b.curve.categories.assign(b.categories.begin(), b.categories.end());
    curves.push_back(std::move(b.curve));
  }
  return curves;
}

std::int64_t time_origin(const Trace& trace) {
  std::int64_t origin = 0;
  for (const std::int64_t time : trace.spans.begin_ns) origin = std::min(origin, time);
  for (const std::int64_t time : trace.memory.time_ns) origin = std::min(origin, time);
  for (const Counter& counter : trace.counters) origin = std::min(origin, counter.time_ns);
  for (const Flow& flow : trace.flows) origin = std::min({origin, flow.from_ns, flow.to_ns});
  return origin;
}

}  // namespace shard
