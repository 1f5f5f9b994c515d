// A PyTorch memory snapshot written again: what goes in comes out.
#pragma once

#include <filesystem>

#include "traces/base/result.h"
#include "traces/reader.h"
#include "traces/snapshot.h"

namespace shard {

/// Writes segments, blocks, events and stacks as they were read, whose names and stacks `trace` holds, and what else
/// the snapshot said. Addresses, order and times stay. Left out: events of actions that this program does not know, and
/// what entries say beyond texts and whole numbers. Fails with Errc::cannot_create or Errc::io; `path` appears complete
/// or not at all.
[[nodiscard]] Result<void> export_snapshot_again(const Snapshot& snapshot, const Trace& trace,
                                                 const std::filesystem::path& path);

}  // namespace shard
