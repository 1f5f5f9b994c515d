// A folder for a run's files from which the loader takes libraries into somebody's program.
#pragma once

#include <string>

#include "traces/base/result.h"
#include "traces/base/scratch.h"

namespace shard::profiler {

/// Whether lists of paths (LD_PRELOAD, LD_LIBRARY_PATH) can have it: no blank, colon, semicolon or dollar is in it.
[[nodiscard]] bool can_stand_in_lists(const std::string& path);

/// In TMPDIR; where lists of paths cannot have that, or nothing may be executed in it (mounted noexec), in /tmp,
/// /var/tmp or /dev/shm. Errc::unavailable, naming TMPDIR, where none will do; Errc::cannot_create where none can be
/// written to.
[[nodiscard]] Result<Scratch> run_folder();

}  // namespace shard::profiler
