// A predicted step as a recording of PyTorch's profiler, which Perfetto, HTA and PyTorch's own tools open.
#pragma once

#include <filesystem>
#include <string>

#include "profiler/steptime/forecast.h"
#include "traces/base/result.h"

namespace shard::steptime {

struct TimelineOf {
  std::string card;
  std::int64_t rank = 0, world_size = 1;
};

/// Kernels by stream, the calls that launch them and their operators by thread, in microseconds from the step's begin.
/// What has no law says so among its arguments. Errors: cannot_create, io.
[[nodiscard]] Result<void> write_kineto(const Forecast& forecast, const TimelineOf& of,
                                        const std::filesystem::path& path);

}  // namespace shard::steptime
