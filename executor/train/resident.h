// The memory this process really has in use, as the operating system accounts it.
#pragma once

#include "traces/base/units.h"

namespace shard::train {

/// Proportional set size: shared pages count for each process that maps them by its share, so that the sum over a
/// host's ranks counts them once. 0 where the system does not tell (/proc/self/smaps_rollup).
[[nodiscard]] Bytes proportional_set_size();

}  // namespace shard::train
