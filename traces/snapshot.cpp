// Sums over a snapshot.
#include "traces/snapshot.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace shard {

std::int32_t busiest_device(const Snapshot& snapshot) {
  std::map<std::int32_t, std::int64_t> events;
  for (const SnapshotEvent& event : snapshot.events) ++events[event.device];
  std::int32_t busiest = 0;
  for (const auto& [device, count] : events) {
    if (count > events[busiest]) busiest = device;
  }
  return busiest;
}

std::int64_t Snapshot::block_count() const {
  std::int64_t count = 0;
  for (const SnapshotSegment& segment : segments) count += static_cast<std::int64_t>(segment.blocks.size());
  return count;
}

std::int64_t Snapshot::reserved_bytes() const {
  std::int64_t sum = 0;
  for (const SnapshotSegment& segment : segments) sum += segment.bytes;
  return sum;
}

std::int64_t Snapshot::allocated_bytes() const {
  std::int64_t sum = 0;
  for (const SnapshotSegment& segment : segments) sum += segment.allocated_bytes;
  return sum;
}

nlohmann::ordered_json to_json(const Snapshot& snapshot) {
  const Snapshot::Start& start = snapshot.at_start;
  std::map<std::string, std::int64_t> actions;
  std::set<std::int32_t> devices;
  for (const SnapshotEvent& event : snapshot.events) {
    ++actions[to_string(event.action)];
    devices.insert(event.device);
  }
  for (const SnapshotSegment& segment : snapshot.segments) devices.insert(segment.device);
  return {{"segment_count", snapshot.segments.size()},
          {"block_count", snapshot.block_count()},
          {"event_count", static_cast<std::int64_t>(snapshot.events.size()) + snapshot.unknown_event_count},
          {"reserved_bytes", snapshot.reserved_bytes()},
          {"allocated_bytes", snapshot.allocated_bytes()},
          {"start_reserved_bytes", start.reserved_bytes},
          {"start_allocated_bytes", start.allocated_bytes},
          {"device_count", devices.size()},
          {"actions", actions}};
}

}  // namespace shard
