// What blocks are for that nothing else tells: what the program's optimizers held.
#pragma once

#include <filesystem>

#include "traces/import/import.h"

namespace shard::dryrun {

/// Sets categories of the recording's blocks that are not known by what python/holdings.py wrote into the file:
/// parameters, gradients, optimizer states. Events stay as they are where the file is not there, or does not fit the
/// recording.
void add_holdings(const std::filesystem::path& file, LoadedTrace& recording);

}  // namespace shard::dryrun
