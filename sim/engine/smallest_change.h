// What to change, and as little as possible, when a strategy does not fit.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sim/strategy/strategy.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::engine {

struct Change {
  std::string text;  ///< the options to give, e.g. "--stage 2"
  plan::Strategy strategy;
  Bytes peak;  ///< device extent with it
};

/// The peak of a neighbouring strategy, as compile and simulate find it; an error means that it is not allowed.
using PeakOf = std::function<Result<Bytes>(const plan::Strategy&)>;

/// Changes of one option first, the ones that cost least time first: what was asked for and costs memory left
/// out, gradients in their parameters' place, a higher stage, recomputation, half the micro-batch with twice the
/// accumulation, a smaller chunk, optimizer state or everything in host memory, kinds of model data back on the device
/// or on disk (where host memory is short); then the same together, down to the least device memory known. Returns the
/// first whose peak is at most `capacity`, nothing when none is.
[[nodiscard]] std::optional<Change> smallest_change(const plan::Strategy& strategy, Bytes capacity,
                                                    const PeakOf& peak_of);

}  // namespace shard::engine
