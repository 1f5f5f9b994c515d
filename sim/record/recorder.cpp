// Ops to spans, lifetimes to memory events, collectives and moves to states of units.
#include "sim/record/recorder.h"

#include <optional>
#include <variant>

#include "sim/ir/effects.h"

namespace shard::record {
namespace {

using plan::Buffer;
using plan::Op;
using plan::Plan;

/// The unit that an op gathers, reduces, adds up or moves; invalid for others.
UnitId unit_of(const Op& op) {
  if (const auto* c = std::get_if<plan::Communicate>(&op.action)) return c->unit;
  if (const auto* a = std::get_if<plan::Accumulate>(&op.action)) return a->unit;
  if (const auto* m = std::get_if<plan::Copy>(&op.action)) return m->unit;
  return UnitId{};
}

/// Communicated or copied.
Bytes bytes_moved(const Plan& plan, const Op& op) {
  const plan::Effects e = effects(plan, op);
  if (std::holds_alternative<plan::Copy>(op.action)) return e.bytes_read;
  return e.sends ? e.sends->bytes : Bytes{0};
}

/// A unit's state, and the memory that it is in or leaves.
struct UnitMoment {
  UnitState state = UnitState::sharded;
  Memory memory = Memory::device;
};
struct UnitChange {
  UnitId unit{};
  std::optional<UnitMoment> begin{};
  UnitMoment end{};
};

/// What becomes of a unit when an op that gathers, reduces or moves it, or creates it away from the device, begins and
/// ends; nothing for other ops.
std::optional<UnitChange> unit_change_of(const Plan& plan, const Op& op) {
  if (const auto* call = std::get_if<plan::Communicate>(&op.action)) {
    if (!call->unit.valid()) return std::nullopt;
    const bool gather = call->kind == Collective::all_gather || call->kind == Collective::broadcast;
    return UnitChange{.unit = call->unit,
                      .begin = UnitMoment{.state = gather ? UnitState::gathering : UnitState::reducing},
                      .end = {.state = gather ? UnitState::gathered : UnitState::sharded}};
  }
  if (const auto* move = std::get_if<plan::Copy>(&op.action)) {
    if (!move->unit.valid()) return std::nullopt;
    const Buffer& from = plan.buffer(op.operands[0].buffer);
    const Buffer& to = plan.buffer(op.operands[1].buffer);
    const bool whole = to.category == Category::gathered && op.operands[1].bytes == to.bytes.count();
    return UnitChange{.unit = move->unit,
                      .begin = UnitMoment{.state = UnitState::moving, .memory = from.memory},
                      .end = {.state = whole ? UnitState::gathered : UnitState::sharded, .memory = to.memory}};
  }
  if (std::holds_alternative<plan::Initialize>(op.action)) {
    const Buffer& made = plan.buffer(op.operands[0].buffer);
    if (made.category != Category::parameter || made.memory == Memory::device) return std::nullopt;
    return UnitChange{.unit = made.unit, .begin = {}, .end = {.state = UnitState::sharded, .memory = made.memory}};
  }
  return std::nullopt;
}

/// Where a unit rests again when this buffer is given back; nothing for buffers that do not decide it.
std::optional<Memory> unit_rests_after(const Plan& plan, const Buffer& released) {
  if (released.category != Category::gathered || !released.unit.valid()) return std::nullopt;
  const auto unit = static_cast<std::size_t>(released.unit.value);
  return unit < plan.placed.resting.size() ? plan.placed.resting[unit].parameters : Memory::device;
}

}  // namespace

void Recorder::begin(Phase phase, std::int64_t step) {
  phase_ = phase;
  step_ = static_cast<std::int32_t>(step);
}

TrackId Recorder::track(Stream stream) {
  TrackId& track = tracks_[static_cast<std::size_t>(stream)];
  if (!track.valid()) track = writer_.track({.rank = rank_, .kind = TrackKind::stream, .stream = stream, .name = {}});
  return track;
}

void Recorder::op(const Op& op, const OpTime& time) {
  const auto* collective = std::get_if<plan::Communicate>(&op.action);
  const Activity whole = collective != nullptr ? activity_of(collective->kind) : Activity::unknown;
  writer_.add(Span{.track = track(op.stream),
                   .begin_ns = time.begin_ns,
                   .duration_ns = time.end_ns - time.begin_ns,
                   .op = op.id,
                   .name = writer_.name(op.name),
                   .phase = phase_,
                   .step = step_,
                   .micro_step = op.micro_step,
                   .bytes = bytes_moved(plan_, op).count(),
                   .unit = unit_of(op),
                   .waiting_ns = time.waiting_ns,
                   .part = op.part,
                   .activity = time.has_parts ? Activity::mark : whole});
  const auto change = unit_change_of(plan_, op);
  if (!change) return;
  const auto add = [&](std::int64_t time_ns, const UnitMoment& moment) {
    writer_.add(ChunkState{rank_, change->unit, time_ns, moment.memory, moment.state});
  };
  if (change->begin) add(time.begin_ns, *change->begin);
  add(time.end_ns, change->end);
}

void Recorder::change(const Op& op, BufferId id, bool acquired, std::int64_t time_ns) {
  const Buffer& buffer = plan_.buffer(id);
  writer_.add(MemoryEvent{.rank = rank_,
                          .memory = buffer.memory,
                          .buffer = id,
                          .offset_bytes = buffer.offset,
                          .delta_bytes = (acquired ? 1 : -1) * arena_bytes(buffer).count(),
                          .category = buffer.category,
                          .op = op.id,
                          .time_ns = time_ns,
                          .phase = phase_,
                          .step = step_,
                          .unit = buffer.unit});
}

void Recorder::acquired(const Op& op, BufferId buffer, std::int64_t time_ns) {
  change(op, buffer, true, time_ns);
}

void Recorder::released(const Op& op, BufferId id, std::int64_t time_ns) {
  change(op, id, false, time_ns);
  const Buffer& buffer = plan_.buffer(id);
  if (const auto memory = unit_rests_after(plan_, buffer))
    writer_.add(ChunkState{rank_, buffer.unit, time_ns, *memory, UnitState::sharded});
}

void Recorder::peak(Phase phase, Memory memory, Bytes extent, Bytes live_peak) {
  const Bytes arena = plan_.arena_bytes[static_cast<std::size_t>(memory)];
  if (arena == Bytes{0}) return;
  writer_.add(ArenaSummary{.rank = rank_,
                           .memory = memory,
                           .phase = phase,
                           .peak_bytes = extent.count(),
                           .live_peak_bytes = live_peak.count(),
                           .capacity_bytes = arena.count()});
}

void Recorder::collective(Collective kind, std::int64_t count, Bytes bytes) {
  if (count > 0) writer_.add(CollectiveTotal{.rank = rank_, .kind = kind, .count = count, .bytes = bytes.count()});
}

}  // namespace shard::record
