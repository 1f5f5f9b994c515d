// A PyTorch memory snapshot as the recording that the allocator's model replays.
#pragma once

#include <cstdint>
#include <string>

#include "traces/snapshot.h"

namespace shard::commands {

/// Rows of sim/like/pytorch/recording.h for one device: the state at the start, then every event.
[[nodiscard]] std::string recording_of(const Snapshot& snapshot, std::int32_t device);

}  // namespace shard::commands
