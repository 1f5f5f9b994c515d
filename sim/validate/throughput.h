// Tokens per second of a run: its settings as a training step, priced by the laws of kernels of its machine.
#pragma once

#include "sim/cluster/cluster.h"
#include "sim/step/step_time.h"
#include "sim/validate/published_run.h"
#include "traces/base/result.h"

namespace shard::validate {

/// Per GPU, in steady steps; between `low` and `high` four of five are expected.
struct Throughput {
  double tokens_per_second = 0, low = 0, high = 0;
  bool launch_bound = false;  ///< by the rule of step::launch_bound()
};

/// `card`: the cluster that machine_of() names; the run's own links, network, hosts and power take the place of its.
[[nodiscard]] cluster::Cluster cluster_of(const PublishedRun& run, cluster::Cluster card);

/// `machine`: of cluster_of(). Errors: contradiction, for what no laws are known of, and those of step_time().
[[nodiscard]] Result<Throughput> predict_throughput(const PublishedRun& run, const cluster::Cluster& machine);

}  // namespace shard::validate
