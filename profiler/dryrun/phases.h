// Which part of a run each of the allocator's events belongs to: creation, first step, steady steps, evaluation, save,
// load.
#pragma once

#include <cstdint>
#include <filesystem>

#include "traces/import/import.h"

namespace shard::dryrun {

/// Sets the phase of the recording's memory events by what python/phases.py wrote into the file. Creation ends where a
/// module is called for the first time, or else where backward is. Events stay as they are where the file is not there,
/// or does not fit the recording. Returns how many allocations came before the first that is recorded.
std::int64_t add_phases(const std::filesystem::path& file, LoadedTrace& recording);

}  // namespace shard::dryrun
