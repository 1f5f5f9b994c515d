// Seconds to nanoseconds, ops to spans, lifetimes to memory events.
#include "sim/engine/trace_events.h"

#include "sim/ir/events.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shard::engine {
namespace {

std::int64_t nanoseconds(Seconds time) {
  return std::llround(time.count() * 1e9);
}

void write_unit_states(Writer& writer, const plan::Plan& plan, const OpRun& run, const TracePlace& place) {
  const auto change = plan::unit_change_of(plan, *run.op);
  if (!change) return;
  const auto add = [&](Seconds time, const plan::UnitMoment& moment) {
    writer.add(ChunkState{place.rank, change->unit, nanoseconds(time + place.shift), moment.memory, moment.state});
  };
  if (change->begin) add(run.interval.begin, *change->begin);
  add(run.interval.end, change->end);
}

}  // namespace

void write_phase(Writer& writer, const plan::Plan& plan, const PhaseRun& run, const TracePlace& place) {
  const plan::EventPlace where{.rank = place.rank, .phase = run.phase, .step = place.step};
  std::array<TrackId, kStreamCount> tracks;
  for (const OpRun& op : run.ops) {
    TrackId& track = tracks[static_cast<std::size_t>(op.op->stream)];
    if (!track.valid()) {
      track = writer.track({.rank = place.rank, .kind = TrackKind::stream, .stream = op.op->stream, .name = {}});
    }
    Span span = plan::span_of(plan, *op.op, where, nanoseconds(op.interval.begin + place.shift),
                              nanoseconds(op.interval.end + place.shift));
    span.track = track;
    span.name = writer.name(op.op->name);
    writer.add(span);
    write_unit_states(writer, plan, op, place);
  }
  for (const MemoryChange& change : run.changes) {
    const plan::Buffer& buffer = plan.buffer(change.buffer);
    writer.add(plan::memory_event_of(plan, *change.op, change.buffer, change.delta > Bytes{0}, where,
                                     nanoseconds(change.time + place.shift)));
    if (const auto memory = plan::unit_rests_after(plan, buffer); memory && change.delta < Bytes{0}) {
      writer.add(
          ChunkState{place.rank, buffer.unit, nanoseconds(change.time + place.shift), *memory, UnitState::sharded});
    }
  }
}

void write_arenas(Writer& writer, const plan::Plan& plan, const PhaseRun& run, Rank rank) {
  for (const ArenaRun& arena : run.arenas) {
    const Bytes capacity = plan.arena_bytes[static_cast<std::size_t>(arena.memory)];
    if (capacity == Bytes{0}) continue;
    writer.add(ArenaSummary{.rank = rank,
                            .memory = arena.memory,
                            .phase = run.phase,
                            .peak_bytes = arena.extent.count(),
                            .live_peak_bytes = arena.live_peak.count(),
                            .capacity_bytes = capacity.count()});
  }
}

void write_collectives(Writer& writer, const CollectiveCounts& counts, Rank rank) {
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind].count == 0) continue;
    writer.add(CollectiveTotal{.rank = rank,
                               .kind = static_cast<Collective>(kind),
                               .count = counts[kind].count,
                               .bytes = counts[kind].bytes.count()});
  }
}

}  // namespace shard::engine
