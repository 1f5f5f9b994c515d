// How long a framework's step takes: its options as a training step, priced by the laws of a cluster's kernels.
#pragma once

#include "sim/cluster/cluster.h"
#include "sim/like/simulate_eager.h"
#include "sim/model/graph.h"
#include "sim/step/step_time.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::like {

/// Errors: contradiction, for what no laws are known of: fp32, what rests in host memory, models whose parameters are
/// not those of a decoder's blocks (mixtures of experts), and a cluster without laws of kernels.
[[nodiscard]] Result<step::StepTime> eager_step_time(const model::Model& model, const plan::Strategy& strategy,
                                                     const EagerOptions& options, const cluster::Cluster& cluster);

}  // namespace shard::like
