// When each unit's gradient is complete.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/compile/draft.h"

namespace shard::plan {

/// By unit: the position in the step's ops of the last backward operator that has one of its trained parameters; 0
/// without any. Equal on all ranks. Valid before steps are added.
[[nodiscard]] std::vector<std::size_t> last_backward_of_units(const Draft& plan);

}  // namespace shard::plan
