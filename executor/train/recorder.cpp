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
  writer_.add(span);
  if (const auto states = plan::unit_states_of(op)) {
    writer_.add(ChunkState{place_.rank, span.unit, record.begin_ns, Memory::device, states->first});
    writer_.add(ChunkState{place_.rank, span.unit, record.end_ns, Memory::device, states->second});
  }
}

void Recorder::memory(const cpu::MemoryRecord& record) {
  writer_.add(plan::memory_event_of(plan_, *record.op, record.buffer, record.acquire, place_, record.time_ns));
  const plan::Buffer& buffer = plan_.buffer(record.buffer);
  if (!record.acquire && plan::unit_rests_after(buffer))
    writer_.add(ChunkState{place_.rank, buffer.unit, record.time_ns, buffer.memory, UnitState::sharded});
}

void Recorder::summarize(const SessionResult& result) {
  const Bytes capacity = plan_.arena_bytes[static_cast<std::size_t>(Memory::device)];
  for (const PhasePeak& phase : result.phases)
    writer_.add(ArenaSummary{.rank = place_.rank,
                             .memory = Memory::device,
                             .phase = phase.phase,
                             .peak_bytes = phase.peak.count(),
                             .live_peak_bytes = phase.live_peak.count(),
                             .capacity_bytes = capacity.count()});
  for (int k = 0; k < kCollectiveCount; ++k) {
    const auto kind = static_cast<Collective>(k);
    const CollectiveCount& total = result.collectives[kind];
    if (total.calls > 0)
      writer_.add(
          CollectiveTotal{.rank = place_.rank, .kind = kind, .count = total.calls, .bytes = total.bytes.count()});
  }
}

}  // namespace shard::train
