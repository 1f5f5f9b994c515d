// What a recorded program would have reserved under other settings of PyTorch's allocator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "traces/snapshot.h"

namespace shard::commands {

struct AllocatorWhatIf {
  std::string settings;  ///< as PYTORCH_CUDA_ALLOC_CONF has them; empty: none
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_reserved_bytes = 0;
  bool fits = true;  ///< false, and no peaks: of garbage collection, in what the recording reserved
};

struct AllocatorWhatIfs {
  std::int64_t recorded_peak_reserved_bytes = 0;
  std::vector<AllocatorWhatIf> replays;  ///< of the model: first without settings
};

/// Replays one device's events under each of the usual settings. Errors as replay_allocator().
[[nodiscard]] Result<AllocatorWhatIfs> allocator_what_ifs(const Snapshot& snapshot, std::int32_t device);

}  // namespace shard::commands
