// One row per segment and block at the start, and per event.
#include "sim/commands/snapshot_recording.h"

#include "sim/like/pytorch/recording.h"

namespace shard::commands {

std::string recording_of(const Snapshot& snapshot, std::int32_t device) {
  const auto number = [](auto value) { return std::to_string(value) + ","; };
  std::string rows = std::string(kRecordingHeader) + "\n";
  const Snapshot::Start& start = snapshot.at_start;
  for (const SnapshotSegment& segment : start.segments) {
    if (segment.device != device) continue;
    rows += "segment," + number(segment.address) + number(segment.bytes) + number(segment.stream) +
            to_string(segment.large ? Pool::large : Pool::small) + ",\n";
  }
  for (const Snapshot::Start::Live& block : start.blocks) {
    if (block.device == device) rows += "block," + number(block.address) + number(block.bytes) + ",,\n";
  }
  for (const SnapshotEvent& event : snapshot.events) {
    if (event.device != device) continue;
    rows += std::string(to_string(event.action)) + "," + number(event.address) + number(event.bytes) +
            number(event.stream) + "," + std::to_string(event.time_us) + "\n";
  }
  return rows;
}

}  // namespace shard::commands
