// Tokens per second of a run, by the simulator of our own executor on the example cluster that is like its machine.
#pragma once

#include "sim/cluster/cluster.h"
#include "sim/validate/published_run.h"
#include "traces/base/result.h"

namespace shard::validate {

/// Tokens per second and GPU in steady steps. `machine` is the cluster that machine_of() names. Micro-steps
/// beyond the second cost what the second does. Errors: contradiction (arithmetic that the simulator does not have),
/// and those of compile() and simulate().
[[nodiscard]] Result<double> predict_throughput(const PublishedRun& run, const cluster::Cluster& machine);

}  // namespace shard::validate
