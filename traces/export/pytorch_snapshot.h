// Exports device memory as a PyTorch memory snapshot, for pytorch.org/memory_viz and torch.cuda._memory_viz.
#pragma once

#include <filesystem>

#include "traces/base/result.h"
#include "traces/reader.h"

namespace shard {

/// What torch.cuda.memory._dump_snapshot() writes: a pickle (protocol 2) of {"segments", "device_traces"}. Ranks become
/// devices, the arena of each one segment, taken with the first event. Buffers become blocks at the arena's offsets (at
/// its end where offsets of live buffers overlap, as in traces that have none), acquisitions and releases "alloc" and
/// "free_completed" in plan order; a time before that of an earlier event is written as the later one. The stack of an
/// event is its op, phase and step; its category is named too. Times are microseconds, of the wall clock where the
/// trace knows it. A release of what was never acquired is left out. Memory other than the device's has no place in a
/// snapshot. Fails with Errc::contradiction where there are no events of device memory, Errc::cannot_create or
/// Errc::io; `path` appears complete or not at all.
[[nodiscard]] Result<void> export_pytorch_snapshot(const Trace& trace, const std::filesystem::path& path);

}  // namespace shard
