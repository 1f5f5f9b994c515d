// What all exporters show: lanes with names, and memory over time per rank, memory and category.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/lanes.h"
#include "traces/peaks.h"
#include "traces/reader.h"

namespace shard {

/// "compute", "communication 2" for its second lane, or the track's own name.
[[nodiscard]] std::string lane_name(const Track& track, std::int32_t lane);

/// Bytes live after an event.
struct MemorySample {
  std::int64_t time_ns = 0;
  std::int64_t live_bytes = 0;
  Category category = Category::workspace;  ///< whose bytes changed ...
  std::int64_t category_bytes = 0;          ///< ... and what they are now
};

/// Memory of one rank over time.
struct MemoryCurve {
  Rank rank{};
  Memory memory = Memory::device;
  std::vector<Category> categories;   ///< that occur, in order
  std::vector<MemorySample> samples;  ///< by time
};

/// The curves of all ranks and memories. Bytes are summed in plan order, which is where peaks are exact; a sample whose
/// time lies before that of an earlier one in plan order is shown at the later time.
[[nodiscard]] std::vector<MemoryCurve> memory_curves(const Trace& trace);

/// The earliest time of the trace where that is negative, else 0: what exporters subtract, since some viewers know no
/// negative times.
[[nodiscard]] std::int64_t time_origin(const Trace& trace);

}  // namespace shard
