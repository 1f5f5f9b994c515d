// What a rank saw that is not a number: in the losses of its steps, and in the parameters that it steps or shows.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/model/graph.h"

namespace shard::executor {

/// A parameter that held an infinity or NaN behind a step.
struct NotFinite {
  std::int64_t step = 0;  ///< counted from 0; -1 behind creation
  model::ParamId param;
};

/// Costs nothing that a step would notice: parameters are looked at while an optimizer that runs on the host has them
/// in its cache, and where the digest phase hashes them.
struct Health {
  std::optional<NotFinite> state{};    ///< the first that this rank saw
  std::int64_t lost_micro_batch = -1;  ///< of the last step, the first whose loss is not finite; the same on all ranks
};

}  // namespace shard::executor
