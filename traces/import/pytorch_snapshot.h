// Imports PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot).
#pragma once

#include "traces/base/result.h"
#include "traces/import/byte_source.h"
#include "traces/import/import.h"

namespace shard::import {

/// Until when a block counts that was let go while another stream still worked with it (record_stream): until the
/// allocator has it back, as in PyTorch's `active_bytes`, or until its owner let go, as in `allocated_bytes` and
/// torch.cuda.max_memory_allocated().
enum class Counted { active, allocated };

/// Devices become ranks. Allocations and frees are memory events of what a block really takes (for one that is gone,
/// the request rounded up to 512 bytes, the allocator's unit); what was live before the first event comes first.
/// Offsets are those of segments put one beside the other in the order in which they came, where there is room.
/// Reserved bytes are a counter, peaks the arena summary; oom, snapshot and user-defined events are instants. Fails
/// with Errc::malformed where the pickle is no snapshot.
[[nodiscard]] Result<LoadedTrace> import_pytorch_snapshot(ByteSource& source, Counted counted = Counted::active);

}  // namespace shard::import
