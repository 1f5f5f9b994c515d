// What it costs to launch a kernel that does nothing to speak of: by itself, and as a node of a graph.
#pragma once

#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/measure/measurement.h"
#include "executor/cuda/measure/stopwatch.h"

namespace shard::cuda {

struct LaunchTimes {
  double host = 0;   ///< seconds of the host for one launch
  double each = 0;   ///< from one kernel to the next, launched one by one
  double graph = 0;  ///< from one kernel to the next in a graph
};

/// Rows of `launches` kernels.
[[nodiscard]] Result<LaunchTimes> measure_launches(Api& api, const Kernels& kernels, int launches, double least,
                                                   Measurements& into);

}  // namespace shard::cuda
