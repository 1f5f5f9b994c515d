// NCCL's reductions, of what the host may look at.
#pragma once

#include <optional>
#include <vector>

#include "profiler/standin/promises.h"

namespace shard::standin {

/// ncclDataType_t's sizes; 4 for what is not known.
[[nodiscard]] std::size_t bytes_of_type(int type);

/// Element by element, in the order of the ranks: ncclRedOp_t 0 sum, 1 product, 2 most, 3 least, 4 mean. Of equally
/// many bytes each. None for other operations and for floats of 16 and 8 bits.
[[nodiscard]] std::optional<Bytes> reduce(const std::vector<Bytes>& parts, int type, int operation);

}  // namespace shard::standin
