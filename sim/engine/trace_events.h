// From the raw record of a phase to the events of a trace.
#pragma once

#include <cstdint>

#include "sim/engine/phase_run.h"
#include "sim/ir/plan.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"
#include "traces/writer.h"

namespace shard::engine {

/// Which repetition of a phase is written, and for whom.
struct TracePlace {
  Rank rank;
  std::int32_t step = 0;  ///< creation and the first step: 0; the digest: the last step
  Seconds shift;          ///< added to all times: a steady step is simulated once and written many times
};

/// Spans of all ops, memory events in plan order, and the states of gathered units.
void write_phase(Writer& writer, const plan::Plan& plan, const PhaseRun& run, const TracePlace& place);

/// Peaks of one phase: one summary for each memory in use.
void write_arenas(Writer& writer, const plan::Plan& plan, const PhaseRun& run, Rank rank);

/// Totals over creation and steps.
void write_collectives(Writer& writer, const CollectiveCounts& counts, Rank rank);

}  // namespace shard::engine
