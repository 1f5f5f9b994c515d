// Latency and bandwidth of collectives by size, through whichever communicator.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "executor/comm/communicator.h"
#include "executor/cuda/measure/measurement.h"

namespace shard::cuda {

/// One rank's end. The arena has not been made yet.
struct CollectiveEnd {
  Communicator& communicator;
  /// Returns when all that this rank has started has ended on its device.
  std::function<Result<void>()> finish;
  std::string between{};  ///< whom, for the figures' names: "2 ranks"
};

struct CollectiveRates {
  double latency = 0;    ///< seconds of the smallest all-gather
  double bandwidth = 0;  ///< of the largest, as nccl-tests count a bus: (n - 1) / n of the full buffer over the time
};

/// All ranks call it, with ascending sizes of the full buffer, multiples of 4 x ranks; the figures are rank 0's, and
/// only it adds to `into`. Each is repeated for `least` seconds.
[[nodiscard]] Result<CollectiveRates> measure_collectives(const CollectiveEnd& end, std::span<const Bytes> sizes,
                                                          double least, Measurements& into);

}  // namespace shard::cuda
