// A trace of any size, like one of sharded training or hard in one way, for measuring readers and the viewer.
#pragma once

#include <cstdint>
#include <filesystem>

#include "traces/base/result.h"

namespace shard {

/// What a trace is hard in.
enum class Shape : std::uint8_t {
  training,  ///< nothing: as our own runs are
  unsorted,  ///< spans of a track in random order
  nested,    ///< 1,000 spans inside each other
  one_lane,  ///< one track without nesting
  lanes,     ///< 10,000 tracks
  crossing,  ///< spans of one track, 10,000 of which cross each other at any time
  names,     ///< a name of its own for every span
};

struct SyntheticTrace {
  Shape shape = Shape::training;
  std::int64_t spans = 100'000;
  std::int64_t memory_events = 20'000;
  std::int64_t ranks = 8;
  std::int64_t chunks = 96;
  std::int64_t chunk_states = -1;  ///< changes of state on rank 0; -1: 4 a chunk
};

/// Writes exactly so many spans and memory events: ranks train step after step, with nested spans on six streams each,
/// counters, and one peak that lasts 1 ns. Other shapes have the spans, and memory events of one rank. The same options
/// give the same bytes. Fails as Writer does.
[[nodiscard]] Result<void> write_synthetic_trace(const std::filesystem::path& path, const SyntheticTrace& options);

}  // namespace shard
