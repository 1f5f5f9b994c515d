// The memory this process really has in use, as the operating system accounts it.
#pragma once

#include "traces/base/units.h"

namespace shard::train {

/// Proportional set size: shared pages count for each process that maps them by its share, so that the sum over a
/// host's ranks counts them once. What the C library keeps for its next allocation is given back first: how much that
/// is depends on how the heap came to lie (up to 1 MiB a rank was seen), not on what is in use.
/// Left out are pages of files, unless they are shared memory (an arena's window may lie in any directory): a process's
/// share of a library's pages changes whenever another process that uses it begins or ends (+-7 MiB were seen); and
/// what the plan puts on disk is read and written, never mapped: its pages are the system's cache.
/// 0 where the system does not tell (/proc/self/smaps).
[[nodiscard]] Bytes proportional_set_size();

}  // namespace shard::train
