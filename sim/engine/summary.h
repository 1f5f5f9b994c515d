// From the raw record of a phase to what is told about it. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/engine/holders.h"
#include "sim/engine/phase_run.h"
#include "sim/engine/simulation.h"
#include "sim/ir/plan.h"

namespace shard::engine {

/// With the `count` groups that hold most of each memory at its peak, by `holders` of this plan.
[[nodiscard]] PhaseResult summarize(const plan::Plan& plan, const PhaseRun& run, Holders& holders, std::size_t count);

/// Device memory after every change, beginning with what was live at time 0.
[[nodiscard]] std::vector<MemoryPoint> device_series(const plan::Plan& plan, const PhaseRun& run);

/// "forward" after the last forward op, "backward" after the last backward op, "step" at the end; those that the phase
/// has.
[[nodiscard]] std::vector<Moment> moments_of_step(const plan::Plan& plan, const PhaseRun& run);
[[nodiscard]] Moment moment_after(const PhaseRun& run, std::string name);

}  // namespace shard::engine
