// What a PyTorch memory snapshot says: segments, blocks, and every event of the caching allocator.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traces/event.h"

namespace shard {

/// The file of a frame whose function is a category (to_string(Category)): in snapshots that this program predicts.
inline constexpr const char* kCategoryFile = "shardscope/category";

/// A piece of a segment. Segments are cut into blocks without gaps.
struct SnapshotBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;  ///< as the program asked; 0 where the snapshot does not say
  bool active = false;               ///< in use, or freed and waiting for another stream
  StackId stack{};         ///< that allocated it, in the trace's table; invalid where the snapshot does not say
  bool has_stack = false;  ///< it says something of one, if only that there is none
  NameId state{};          ///< as the snapshot calls it

  friend bool operator==(const SnapshotBlock&, const SnapshotBlock&) = default;
};

/// Memory that the allocator took from the driver.
struct SnapshotSegment {
  std::int32_t device = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t allocated_bytes = 0, active_bytes = 0, requested_bytes = 0;  ///< as the snapshot says
  std::uint64_t stream = 0;
  std::array<std::int64_t, 2> pool{};  ///< {0, 0}: everybody's; others are of CUDA graphs and the like
  bool large = false;                  ///< of the large pool
  bool expandable = false;
  StackId stack{};         ///< that made the allocator take it
  bool has_stack = false;  ///< as of a block
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
  StackId stack{};
  bool has_stack = false;  ///< as of a block

  friend bool operator==(const SnapshotEvent&, const SnapshotEvent&) = default;
};

/// What else an event says of itself: {"user_metadata": "layer 3"}, {"device_free": 1024}.
struct SnapshotRemark {
  std::size_t event = 0;
  NameId key{};
  bool is_text = false;
  NameId text{};
  std::int64_t number = 0;

  friend bool operator==(const SnapshotRemark&, const SnapshotRemark&) = default;
};

/// The state when the snapshot was taken, and the events that led to it (as many as were kept).
struct Snapshot {
  std::vector<SnapshotSegment> segments;
  std::vector<SnapshotEvent> events;     ///< by device, each in the order in which they happened
  std::int64_t unknown_event_count = 0;  ///< of actions that this program does not know

  std::vector<SnapshotRemark> remarks;                               ///< by event
  nlohmann::ordered_json others = nlohmann::ordered_json::object();  ///< allocator_settings, external_annotations, ...
  std::size_t device_count = 0;                                      ///< lists of events that there are, empty ones too

  /// Requests of at least so many bytes get a block that is never split; 0: every block may be.
  std::int64_t max_split_bytes = 0;
  /// Into how many steps each power of two is divided, from 1 MiB on, to which requests are rounded up; 0 or 1: none.
  std::array<std::int64_t, 16> roundup_power2_divisions{};

  /// State before the first event: the one at the end, with every event undone.
  struct Start {
    std::vector<SnapshotSegment> segments;  ///< without blocks
    struct Live {
      std::int32_t device = 0;
      std::uint64_t address = 0;
      std::int64_t bytes = 0;            ///< what the block takes
      std::int64_t requested_bytes = 0;  ///< 0 where the snapshot does not say
      StackId stack{};
    };
    std::vector<Live> blocks;  ///< in use
    std::int64_t reserved_bytes = 0, allocated_bytes = 0;
  };

  /// Found out from all the above by find_block_sizes().
  Start at_start;
  std::vector<std::int64_t> block_bytes;  ///< by event: what the block of an alloc takes, 0 of others

  /// What blocks take, which events do not say, is told by their neighbours. Exact where the allocator is PyTorch's
  /// and no block that was there before the first event was freed before anything was put beside it.
  void find_block_sizes();

  [[nodiscard]] std::int64_t block_count() const;
  [[nodiscard]] std::int64_t reserved_bytes() const;   ///< at the end
  [[nodiscard]] std::int64_t allocated_bytes() const;  ///< at the end
};

/// The device with the most events, the lowest of several; 0 without events.
[[nodiscard]] std::int32_t busiest_device(const Snapshot& snapshot);

/// {"segment_count", "block_count", "event_count", "reserved_bytes", "allocated_bytes", "start_reserved_bytes",
///  "start_allocated_bytes", "actions": {name: count}, "device_count"}
[[nodiscard]] nlohmann::ordered_json to_json(const Snapshot& snapshot);

}  // namespace shard
