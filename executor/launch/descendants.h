// The children of a process that adopts what they leave behind.
#pragma once

#include <chrono>

namespace shard {

/// Ends all that descends from this process: SIGTERM for its children's children (ranks, under a launcher that is
/// held), so that they remove their files, and SIGKILL for all a moment later. This process must be a subreaper
/// (PR_SET_CHILD_SUBREAPER) to inherit what is started meanwhile. Returns when nothing is left, or `limit` has passed.
/// Collects them. Any thread may call it.
void end_descendants(std::chrono::milliseconds limit);

/// Collects children that end by themselves until none is left; true when none is within `limit`.
[[nodiscard]] bool wait_for_descendants(std::chrono::milliseconds limit);

}  // namespace shard
