// What the processes of a rank left in its folder.
#pragma once

#include <filesystem>

#include "profiler/dryrun/dry_run.h"

namespace shard::dryrun {

/// The run of a rank: the snapshot of the process that held most, and what the stand-in and the hook counted. How it
/// ended is there where the ranks' launcher wrote it down, else as it was.
void collect(const std::filesystem::path& folder, DryRun& run);

}  // namespace shard::dryrun
