// What descends from a process that adopts what its children leave behind: listed, told to end, ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace shard {

/// From now on this process inherits what its descendants leave behind, those that left their session, too.
void adopt_descendants();

struct Descendant {
  pid_t process = 0;
  pid_t parent = 0;
  pid_t group = 0;  ///< of processes
};

/// All that runs and descends from a process that adopts, parents before children.
[[nodiscard]] std::vector<Descendant> descendants_of(pid_t process);

/// Whether nothing becomes of a signal that this process gets: it ignores it, or is over.
[[nodiscard]] bool ignores(pid_t process, int signal);

/// Ends all that descends from this process: SIGTERM for what is below its children (ranks, under a launcher that is
/// held), so that they remove their files, and SIGKILL for all a moment later. This process must adopt, to inherit what
/// is started meanwhile. Returns when nothing is left, or `limit` has passed. Collects them. Any thread may call it.
void end_descendants(std::chrono::milliseconds limit);

/// Collects children that end by themselves until none is left; true when none is within `limit`.
[[nodiscard]] bool wait_for_descendants(std::chrono::milliseconds limit);

}  // namespace shard
