// The kernels of one block of a decoder, forward and backward, priced.
#pragma once

#include "sim/cluster/cluster.h"
#include "sim/step/kernel_sum.h"
#include "sim/step/training_step.h"

namespace shard::step {

struct BlockTime {
  KernelSum forward, backward;
};

/// Of one micro-batch on one rank of a tensor-parallel group. `card` has kernel_laws.
[[nodiscard]] BlockTime block_time(const TrainingStep& step, const cluster::Cluster& card);

/// Of the scores and the loss behind the last block, with its backward.
[[nodiscard]] BlockTime loss_time(const TrainingStep& step, const cluster::Cluster& card);

}  // namespace shard::step
