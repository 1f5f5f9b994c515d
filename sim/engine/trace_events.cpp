// Virtual seconds to nanoseconds; what the events say is the recorder's.
#include "sim/engine/trace_events.h"

#include <cmath>

namespace shard::engine {
namespace {

std::int64_t nanoseconds(Seconds time) {
  return std::llround(time.count() * 1e9);
}

}  // namespace

void write_phase(record::Recorder& recorder, const PhaseRun& run, std::int64_t step, Seconds shift) {
  recorder.begin(run.phase, step);
  for (const OpRun& op : run.ops)
    recorder.op(*op.op,
                {.begin_ns = nanoseconds(op.interval.begin + shift), .end_ns = nanoseconds(op.interval.end + shift)});
  for (const MemoryChange& change : run.changes) {
    const std::int64_t time = nanoseconds(change.time + shift);
    if (change.delta > Bytes{0}) {
      recorder.acquired(*change.op, change.buffer, time);
    } else {
      recorder.released(*change.op, change.buffer, time);
    }
  }
}

void write_peaks(record::Recorder& recorder, const PhaseRun& run) {
  for (const ArenaRun& arena : run.arenas) recorder.peak(run.phase, arena.memory, arena.extent, arena.live_peak);
}

void write_collectives(record::Recorder& recorder, const CollectiveCounts& counts) {
  for (std::size_t kind = 0; kind < counts.size(); ++kind)
    recorder.collective(static_cast<Collective>(kind), counts[kind].count, counts[kind].bytes);
}

}  // namespace shard::engine
