// Tokens per second of a run, by the simulator of our own executor on the example cluster that is like its machine.
#pragma once

#include "sim/cluster/cluster.h"
#include "sim/validate/run_description.h"
#include "traces/base/result.h"

namespace shard::validate {

/// Tokens per second and GPU in steady steps. `machine` is the cluster that the run's `machine` names. Micro-steps
/// beyond the second cost what the second does. Errors: contradiction (arithmetic that the simulator does not have),
/// and those of compile() and simulate().
[[nodiscard]] Result<double> predict_throughput(const RunDescription& run, const cluster::Cluster& machine);

}  // namespace shard::validate
