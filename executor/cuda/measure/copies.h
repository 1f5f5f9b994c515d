// How fast bytes go between the host and a device: each way, both ways at once, pinned and pageable.
#pragma once

#include <span>

#include "executor/cuda/measure/measurement.h"
#include "executor/cuda/measure/stopwatch.h"

namespace shard::cuda {

struct CopyRates {
  double latency = 0;    ///< seconds of the smallest pinned copy, of the slower way
  double each_way = 0;   ///< bytes a second of the largest pinned copy, of the slower way
  double both_ways = 0;  ///< of both together
};

/// `sizes`: ascending. A figure for each way, kind of memory and size, and for both ways of pinned memory.
[[nodiscard]] Result<CopyRates> measure_copies(Api& api, std::span<const Bytes> sizes, double least,
                                               Measurements& into);

}  // namespace shard::cuda
