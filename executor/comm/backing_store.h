// Where MPI puts shared windows, and whether there is room: too little would be a SIGBUS in the middle of a run.
#pragma once

#include <string>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// The directory in which Open MPI creates the files behind shared windows (its variable osc_sm_backing_directory);
/// "/dev/shm", its default on Linux, when the MPI in use does not say.
[[nodiscard]] std::string window_directory();

/// Bytes that may still be written in the file system of `directory`; 0 when it cannot be asked.
[[nodiscard]] Bytes room_in(const std::string& directory);

/// The mount point that `directory` is on, for messages: that is what has the size.
[[nodiscard]] std::string mount_point(const std::string& directory);

/// Errc::does_not_fit, naming place, needed and available bytes, when `needed` is more than `available`.
[[nodiscard]] Result<void> check_room(const std::string& directory, Bytes needed, Bytes available);

}  // namespace shard
