// A trace of any size that looks like sharded training, for measuring readers and the viewer.
#pragma once

#include <cstdint>
#include <filesystem>

#include "traces/base/result.h"

namespace shard {

struct SyntheticTrace {
  std::int64_t spans = 100'000;
  std::int64_t memory_events = 20'000;
  std::int64_t ranks = 8;
  std::int64_t units = 96;         ///< units of parameters
  std::int64_t chunk_states = -1;  ///< changes of state on rank 0; -1: 4 a unit
};

/// Writes exactly so many spans and memory events: ranks train step after step, with nested spans on six streams each,
/// counters, and one peak that lasts 1 ns. The same options give the same bytes. Fails as Writer does.
[[nodiscard]] Result<void> write_synthetic_trace(const std::filesystem::path& path, const SyntheticTrace& options);

}  // namespace shard
