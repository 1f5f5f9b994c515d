// Turns SIGTERM and SIGINT into a flag that waits look at, so that a rank can still say who died before it goes.
#pragma once

#include <atomic>

namespace shard {

/// Installs the handlers (once) and returns the flag: 0, or the number of the first signal. For
/// CommOptions::stop_signal. A second signal of the same kind ends the process as if there were no handler.
[[nodiscard]] const std::atomic<int>* install_stop_signal();

}  // namespace shard
