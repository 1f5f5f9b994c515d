// Sums over a snapshot, and its events undone from the last to the first.
#include "traces/import/snapshot.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace shard {

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

Snapshot::Start Snapshot::start() const {
  using Key = std::pair<std::int32_t, std::uint64_t>;  // device, address
  std::map<Key, SnapshotSegment> held;
  std::map<Key, std::int64_t> live;
  for (const SnapshotSegment& segment : segments) {
    SnapshotSegment& copy = held[{segment.device, segment.address}];
    copy = {.device = segment.device,
            .address = segment.address,
            .bytes = segment.bytes,
            .stream = segment.stream,
            .large = segment.large,
            .expandable = segment.expandable};
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.active) live[{segment.device, block.address}] = block.bytes;
    }
  }
  constexpr std::int64_t kSmallSegment = 2 << 20;  // what the small pool takes, and nothing else does
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const Key key{event->device, event->address};
    switch (event->action) {
      case SnapshotAction::alloc: live.erase(key); break;
      case SnapshotAction::free_completed: live[key] = (event->bytes + 511) / 512 * 512; break;
      case SnapshotAction::segment_alloc:
      case SnapshotAction::segment_map: held.erase(key); break;
      case SnapshotAction::segment_free:
      case SnapshotAction::segment_unmap:
        held[key] = {.device = event->device,
                     .address = event->address,
                     .bytes = event->bytes,
                     .stream = event->stream,
                     .large = event->bytes > kSmallSegment,
                     .expandable = event->action == SnapshotAction::segment_unmap};
        break;
      case SnapshotAction::free_requested:
      case SnapshotAction::oom:
      case SnapshotAction::snapshot:
      case SnapshotAction::user_defined: break;
    }
  }
  Start start;
  for (auto& [key, segment] : held) {
    start.reserved_bytes += segment.bytes;
    start.segments.push_back(std::move(segment));
  }
  for (const auto& [key, bytes] : live) {
    start.allocated_bytes += bytes;
    start.blocks.push_back({key.first, key.second, bytes});
  }
  return start;
}

nlohmann::ordered_json to_json(const Snapshot& snapshot) {
  const Snapshot::Start start = snapshot.start();
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
