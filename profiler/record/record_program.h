// Runs somebody's CUDA program with the collector in it, and makes a trace of what its processes did.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "profiler/process/child.h"
#include "profiler/ranges/wanted_ranges.h"
#include "profiler/timeline/timeline.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::profiler {

struct RecordOptions {
  Bytes most{std::int64_t{256} << 20};         ///< of a process's events; the last are kept
  std::optional<double> start_after_seconds;   ///< record from then on
  WantedRanges wanted;                         ///< record while one of these ranges is open
  const std::atomic<int>* switches = nullptr;  ///< how often recording was to be switched off or on again, from outside
};

struct Recorded {
  Ended ended;
  std::optional<Timeline> timeline;  ///< none where nothing was recorded
  std::int64_t processes = 0;        ///< that used CUDA
  std::string why_not;               ///< a sentence, where nothing was recorded
};

/// `folder`: an empty one for the run, which stays as long as the program. `how.environment` and `how.meanwhile` are
/// added to. The program's own end is no error. Fails where it cannot be started, or the folder cannot be written to.
[[nodiscard]] Result<Recorded> record_program(const std::vector<std::string>& program,
                                              const std::filesystem::path& folder, const RecordOptions& options,
                                              Started how);

}  // namespace shard::profiler
