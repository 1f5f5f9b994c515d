// Which micro-batch of a step a rank's micro-step works on.
#pragma once

#include <cstdint>

#include "sim/ir/op.h"
#include "sim/strategy/strategy.h"

namespace shard::plan {

/// Micro-step j of a rank, 0 <= j < accumulation: in turn over the ranks where every micro-step's gradients leave the
/// rank, else one run of micro-batches after another, so that the sums along the tree are of the same micro-batches.
[[nodiscard]] inline LoadBatch dealt(const Strategy& s, std::int64_t j) {
  const std::int64_t of_group = s.accumulation() * s.shard_degree();
  if (s.reduces_every_micro_step())
    return {.first = j * s.shard_degree(), .shard_stride = 1, .replica_stride = of_group};
  return {.first = j, .shard_stride = s.accumulation(), .replica_stride = of_group};
}

}  // namespace shard::plan
