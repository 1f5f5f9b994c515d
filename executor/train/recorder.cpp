// Writes what a backend reports into a trace.
#include "executor/train/recorder.h"

namespace shard::train {

void Recorder::begin(Phase phase, std::int64_t step) {
  place_.phase = phase;
  place_.step = static_cast<std::int32_t>(step);
}

void Recorder::finished(const cpu::OpRecord& record) {
  const plan::Op& op = *record.op;
  TrackId& track = tracks_[static_cast<std::size_t>(op.stream)];
  if (!track.valid())
    track = writer_.track({.rank = place_.rank, .kind = TrackKind::stream, .stream = op.stream, .name = {}});
  Span span = plan::span_of(plan_, op, place_, record.begin_ns, record.end_ns);
  span.track = track;
  span.name = writer_.name(op.name);
  span.waiting_ns = record.waiting_ns;
  writer_.add(span);
  const auto change = plan::unit_change_of(plan_, op);
  if (!change) return;
  if (change->begin)
    writer_.add(ChunkState{place_.rank, change->unit, record.begin_ns, change->begin->memory, change->begin->state});
  writer_.add(ChunkState{place_.rank, change->unit, record.end_ns, change->end.memory, change->end.state});
}

void Recorder::memory(const cpu::MemoryRecord& record) {
  writer_.add(plan::memory_event_of(plan_, *record.op, record.buffer, record.acquire, place_, record.time_ns));
  const plan::Buffer& buffer = plan_.buffer(record.buffer);
  if (const auto memory = plan::unit_rests_after(plan_, buffer); memory && !record.acquire)
    writer_.add(ChunkState{place_.rank, buffer.unit, record.time_ns, *memory, UnitState::sharded});
}

void Recorder::summarize(const SessionResult& result) {
  for (const PhasePeak& phase : result.phases)
    writer_.add(ArenaSummary{.rank = place_.rank,
                             .memory = phase.memory,
                             .phase = phase.phase,
                             .peak_bytes = phase.peak.count(),
                             .live_peak_bytes = phase.live_peak.count(),
                             .capacity_bytes = plan_.arena_bytes[static_cast<std::size_t>(phase.memory)].count()});
  for (int k = 0; k < kCollectiveCount; ++k) {
    const auto kind = static_cast<Collective>(k);
    const CollectiveCount& total = result.collectives[kind];
    if (total.calls > 0)
      writer_.add(
          CollectiveTotal{.rank = place_.rank, .kind = kind, .count = total.calls, .bytes = total.bytes.count()});
  }
}

}  // namespace shard::train
