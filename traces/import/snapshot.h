// What a PyTorch memory snapshot says: segments, blocks, and every event of the caching allocator.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace shard {

/// A piece of a segment. Segments are cut into blocks without gaps.
struct SnapshotBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;  ///< as the program asked; 0 where the snapshot does not say
  bool active = false;               ///< in use, or freed and waiting for another stream

  friend bool operator==(const SnapshotBlock&, const SnapshotBlock&) = default;
};

/// Memory that the allocator took from the driver.
struct SnapshotSegment {
  std::int32_t device = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t allocated_bytes = 0;
  std::uint64_t stream = 0;
  bool large = false;  ///< of the large pool
  bool expandable = false;
  std::vector<SnapshotBlock> blocks{};

  friend bool operator==(const SnapshotSegment&, const SnapshotSegment&) = default;
};

/// What an event of the allocator did (torch/csrc/cuda/memory_snapshot.cpp names them).
enum class SnapshotAction : std::uint8_t {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom,
  snapshot,
  user_defined,
};

[[nodiscard]] constexpr const char* to_string(SnapshotAction action) {
  switch (action) {
    case SnapshotAction::alloc: return "alloc";
    case SnapshotAction::free_requested: return "free_requested";
    case SnapshotAction::free_completed: return "free_completed";
    case SnapshotAction::segment_alloc: return "segment_alloc";
    case SnapshotAction::segment_free: return "segment_free";
    case SnapshotAction::segment_map: return "segment_map";
    case SnapshotAction::segment_unmap: return "segment_unmap";
    case SnapshotAction::oom: return "oom";
    case SnapshotAction::snapshot: return "snapshot";
    case SnapshotAction::user_defined: return "user_defined";
  }
  return "?";
}

struct SnapshotEvent {
  SnapshotAction action = SnapshotAction::alloc;
  std::int32_t device = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  ///< of an alloc what the program asked for, of a free what it gets back
  std::uint64_t stream = 0;
  std::int64_t time_us = 0;  ///< Unix time; 0 where the snapshot has none

  friend bool operator==(const SnapshotEvent&, const SnapshotEvent&) = default;
};

/// The state when the snapshot was taken, and the events that led to it (as many as were kept).
struct Snapshot {
  std::vector<SnapshotSegment> segments;
  std::vector<SnapshotEvent> events;     ///< by device, each in the order in which they happened
  std::int64_t unknown_event_count = 0;  ///< of actions that this program does not know

  /// State before the first event: the one at the end, with every event undone.
  struct Start {
    std::vector<SnapshotSegment> segments;  ///< without blocks
    struct Live {
      std::int32_t device = 0;
      std::uint64_t address = 0;
      std::int64_t bytes = 0;  ///< what the block takes
    };
    std::vector<Live> blocks;  ///< in use
    std::int64_t reserved_bytes = 0, allocated_bytes = 0;
  };
  [[nodiscard]] Start start() const;

  [[nodiscard]] std::int64_t block_count() const;
  [[nodiscard]] std::int64_t reserved_bytes() const;   ///< at the end
  [[nodiscard]] std::int64_t allocated_bytes() const;  ///< at the end
};

/// {"segment_count", "block_count", "event_count", "reserved_bytes", "allocated_bytes", "start_reserved_bytes",
///  "start_allocated_bytes", "actions": {name: count}, "device_count"}
[[nodiscard]] nlohmann::ordered_json to_json(const Snapshot& snapshot);

}  // namespace shard
