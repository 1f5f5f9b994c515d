// What a trace's memory events add up to: peaks by rank, memory and phase, and what was live at them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "traces/reader.h"

namespace shard {

using BytesByCategory = std::array<std::int64_t, kCategoryCount>;

/// Peaks of one memory of one rank in one phase, what earlier phases left live included.
struct MemoryPeak {
  Rank rank{};
  Memory memory = Memory::device;
  Phase phase = Phase::steady_step;
  std::int64_t peak_bytes = 0;            ///< highest end of a live buffer; the arena's alignment is not known here
  std::int64_t live_peak_bytes = 0;       ///< largest sum of live buffers
  std::int64_t peak_time_ns = 0;          ///< of the event that first reached the live peak
  OpId peak_op{};                         ///< likewise
  BytesByCategory at_peak_bytes{};        ///< live at the live peak; sums to live_peak_bytes
  BytesByCategory category_peak_bytes{};  ///< each category's own peak

  friend bool operator==(const MemoryPeak&, const MemoryPeak&) = default;
};

/// Peaks over plan order, sorted by rank, memory and phase. A phase without events has no row.
[[nodiscard]] std::vector<MemoryPeak> memory_peaks(const Trace& trace);

}  // namespace shard
