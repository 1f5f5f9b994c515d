// From the raw record of a phase to the events of a trace.
#pragma once

#include <cstdint>

#include "sim/engine/phase_run.h"
#include "sim/record/recorder.h"
#include "traces/base/units.h"

namespace shard::engine {

/// Spans of all ops, then memory events in plan order. `shift` is added to all times: a steady step is simulated once
/// and written many times.
void write_phase(record::Recorder& recorder, const PhaseRun& run, std::int64_t step, Seconds shift);

/// Peaks of one phase: one summary for each memory in use.
void write_peaks(record::Recorder& recorder, const PhaseRun& run);

/// Totals over creation and steps.
void write_collectives(record::Recorder& recorder, const CollectiveCounts& counts);

}  // namespace shard::engine
