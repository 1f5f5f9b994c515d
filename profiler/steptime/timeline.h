// A predicted step as a recording of PyTorch's profiler, which Perfetto, HTA and PyTorch's own tools open.
#pragma once

#include <filesystem>
#include <string>

#include "profiler/steptime/forecast.h"
#include "traces/base/result.h"
#include "traces/reader.h"

namespace shard::steptime {

struct TimelineOf {
  std::string card;
  std::int64_t rank = 0, world_size = 1;
};

/// Kernels by stream, the calls that launch them and their operators by thread, in microseconds from the step's begin.
/// What has no law says so among its arguments. Errors: cannot_create, io.
[[nodiscard]] Result<void> write_kineto(const Forecast& forecast, const TimelineOf& of,
                                        const std::filesystem::path& path);

/// Puts the step beside the memory of the dry run's recording: spans by stream, and the times of memory events on the
/// clock of the prediction, as far as the host gave something before and behind them; what was before and after the
/// step keeps its distance from it. A recording without times is left as it is.
void add_to(Trace& recording, const Forecast& forecast, const TimelineOf& of);

}  // namespace shard::steptime
