// Device memory that was in use over a recording, its peak, and which calls of which sizes held it then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/reader.h"

namespace shard::profiler {

/// Blocks of one size that one call gave, live at the peak.
struct HeldBlocks {
  std::string call;  ///< "cudaMalloc"; empty: not in the recording
  std::int64_t block_bytes = 0;
  std::int64_t blocks = 0;

  [[nodiscard]] std::int64_t bytes() const { return block_bytes * blocks; }
  friend bool operator==(const HeldBlocks&, const HeldBlocks&) = default;
};

struct MemoryUse {
  Rank rank{};
  std::int64_t begin_ns = 0, end_ns = 0;  ///< of the recording
  std::int64_t peak_bytes = 0;
  std::int64_t peak_ns = 0;  ///< when it was reached first
  std::int64_t at_end_bytes = 0;
  std::vector<std::int64_t> series;  ///< the most in each of equal parts of the recording
  std::vector<HeldBlocks> held;      ///< the largest first; add up to peak_bytes
};

/// Of the rank with the highest peak; nothing where no device memory was allocated. What was allocated before the
/// recording is not in it.
[[nodiscard]] std::optional<MemoryUse> memory_use(const Trace& trace, std::size_t parts);

}  // namespace shard::profiler
