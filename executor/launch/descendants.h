// The children of a process that adopts what they leave behind.
#pragma once

#include <chrono>

namespace shard {

/// SIGKILL for all that descends from this process, the youngest first. It must be a subreaper (PR_SET_CHILD_SUBREAPER)
/// to inherit what is started meanwhile. Until none is left or `limit` has passed. Collects them. Any thread may call
/// it.
void end_descendants(std::chrono::milliseconds limit);

/// Collects children that end by themselves until none is left; true when none is within `limit`.
[[nodiscard]] bool wait_for_descendants(std::chrono::milliseconds limit);

}  // namespace shard
