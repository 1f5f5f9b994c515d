// Imports PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot).
#pragma once

#include "traces/base/result.h"
#include "traces/import/byte_source.h"
#include "traces/import/import.h"

namespace shard::import {

/// Devices become ranks. Allocations and frees are memory events of what a block really takes (for one that is gone,
/// the request rounded up to 512 bytes, the allocator's unit); what was live before the first event comes first.
/// Offsets are those of segments put one beside the other in the order in which they came, where there is room.
/// Reserved bytes are a counter, peaks the arena summary; oom, snapshot and user-defined events are instants. Fails
/// with Errc::malformed where the pickle is no snapshot.
[[nodiscard]] Result<LoadedTrace> import_pytorch_snapshot(ByteSource& source);

}  // namespace shard::import
