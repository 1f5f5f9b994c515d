// Runs all plans of a run in virtual time and says what they will take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "sim/cluster/cluster.h"
#include "sim/compile/compile.h"
#include "sim/engine/simulation.h"
#include "sim/engine/smallest_change.h"
#include "sim/model/graph.h"
#include "traces/base/result.h"
#include "traces/base/units.h"
#include "traces/event.h"
#include "traces/writer.h"

namespace shard::engine {

struct SimulateOptions {
  std::int32_t steps = 1;                               ///< of the run: the first, then steady ones
  bool digest = false;                                  ///< the run ends with a digest of its state
  std::optional<Bytes> device_capacity = std::nullopt;  ///< in place of the cluster's
  std::optional<Bytes> host_capacity = std::nullopt;    ///< of one host, in place of the cluster's
  bool series = true;                                   ///< ClassResult::series is wanted
  std::size_t holders = 5;                              ///< how many largest holders to name
  Writer* trace = nullptr;                              ///< receives the run's events; the caller makes and closes it
  /// Ranks in the trace: this many from rank 0 on, and a representative of each class that is not among them.
  std::int32_t trace_ranks = 64;
  /// Steps whose events are in the trace: the first so many. Peaks and totals are of the whole run in any case.
  std::int32_t trace_steps = 32;
};

/// One representative of each class is simulated: creation, first step, one steady step, digest, as far as its plan has
/// them. Steady steps are equal, so the times and counts of N steps are sums. Errors: contradiction (steps below 1; a
/// cluster too small for the ranks), internal (a plan that contradicts itself).
[[nodiscard]] Result<Simulation> simulate(const plan::PlanSet& plans, const cluster::Cluster& cluster,
                                          const SimulateOptions& options = {});

/// Compiles and simulates without a trace: the largest device extent over the phases of the run. What a PeakOf
/// (smallest_change.h) calls. Errors of compile() and simulate(), and does_not_fit where host memory is too small.
[[nodiscard]] Result<Bytes> peak_device_bytes(const std::shared_ptr<const model::Model>& model,
                                              const plan::Strategy& strategy, const cluster::Cluster& cluster,
                                              const SimulateOptions& options = {});

/// The smallest change with which all memories of the cluster, or the options' in their place, are large enough;
/// nothing when it fits as it is, or when none is known.
[[nodiscard]] std::optional<Change> change_that_fits(const std::shared_ptr<const model::Model>& model,
                                                     const Simulation& simulation, const cluster::Cluster& cluster,
                                                     const SimulateOptions& options);

/// The header of the trace that simulate() fills; all but its kind and clocks is true of a measured one too.
[[nodiscard]] Header trace_header(const plan::PlanSet& plans, const cluster::Cluster& cluster,
                                  const SimulateOptions& options);

}  // namespace shard::engine
