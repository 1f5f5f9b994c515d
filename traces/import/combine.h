// Several recordings of one run as one trace on one axis: a memory snapshot and what the profiler saw, or several
// ranks.
#pragma once

#include <string>
#include <vector>

#include "traces/import/import.h"

namespace shard {

struct NamedTrace {
  std::string name;  ///< the file's, for people
  LoadedTrace loaded;
};

/// Puts all on the axis of the first whose Unix time is known: times of a snapshot and of a profile count from the same
/// epoch. One whose Unix time is not known begins where the earliest of the others does; the result says so, in `parts`
/// and in the metadata ("aligned"). A snapshot's devices become the ranks whose kernels run on them, or stay what they
/// are, which is said too; where a profile and a snapshot both know a rank's device memory the snapshot's is kept.
///
/// Fails with Errc::contradiction for predictions beside measurements, for two plans, and for two recordings of one
/// rank at one time; and, without `force`, for recordings whose clocks say that they are further apart than kOneRunNs.
[[nodiscard]] Result<LoadedTrace> combine(std::vector<NamedTrace> traces, bool force = false);

/// How long after the end of one recording of a run another one of it may begin.
inline constexpr std::int64_t kOneRunNs = 60'000'000'000;

/// load_any() of each, combined where there are several; a recording that breaks off only with `incomplete`.
[[nodiscard]] Result<LoadedTrace> load_all(const std::vector<std::string>& paths, bool incomplete, bool force = false);

}  // namespace shard
