// The memory this process really has in use, as the operating system accounts it.
#pragma once

#include "traces/base/units.h"

namespace shard::train {

/// Proportional set size: shared pages count for each process that maps them by its share, so that the sum over a
/// host's ranks counts them once. Pages of files are left out: a process's share of a library's pages changes whenever
/// any other process on the machine that uses it begins or ends (+-7 MiB were seen), and arenas are never among them.
/// 0 where the system does not tell (/proc/self/smaps_rollup).
[[nodiscard]] Bytes proportional_set_size();

}  // namespace shard::train
