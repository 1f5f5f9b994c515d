// What an op and a change of memory are called in a trace.
#include "sim/ir/events.h"

#include "sim/ir/effects.h"

namespace shard::plan {

UnitId unit_of(const Op& op) {
  if (const auto* c = std::get_if<Communicate>(&op.action)) return c->unit;
  if (const auto* a = std::get_if<Accumulate>(&op.action)) return a->unit;
  if (const auto* m = std::get_if<Copy>(&op.action)) return m->unit;
  return UnitId{};
}

Span span_of(const Plan& plan, const Op& op, const EventPlace& place, std::int64_t begin_ns, std::int64_t end_ns) {
  const Effects e = effects(plan, op);
  Bytes moved{0};
  if (e.sends) moved = e.sends->bytes;
  if (std::holds_alternative<Copy>(op.action)) moved = e.bytes_read;
  return {.track = {},
          .begin_ns = begin_ns,
          .duration_ns = end_ns - begin_ns,
          .op = op.id,
          .name = {},
          .phase = place.phase,
          .step = place.step,
          .micro_step = op.micro_step,
          .bytes = moved.count(),
          .unit = unit_of(op)};
}

MemoryEvent memory_event_of(const Plan& plan, const Op& op, BufferId id, bool acquired, const EventPlace& place,
                            std::int64_t time_ns) {
  const Buffer& buffer = plan.buffer(id);
  return {.rank = place.rank,
          .memory = buffer.memory,
          .buffer = id,
          .offset_bytes = buffer.offset,
          .delta_bytes = (acquired ? 1 : -1) * arena_bytes(buffer).count(),
          .category = buffer.category,
          .op = op.id,
          .time_ns = time_ns,
          .phase = place.phase,
          .step = place.step,
          .unit = buffer.unit};
}

std::optional<UnitChange> unit_change_of(const Plan& plan, const Op& op) {
  if (const auto* call = std::get_if<Communicate>(&op.action)) {
    if (!call->unit.valid()) return std::nullopt;
    const bool gather = call->kind == Collective::all_gather || call->kind == Collective::broadcast;
    return UnitChange{.unit = call->unit,
                      .begin = UnitMoment{.state = gather ? UnitState::gathering : UnitState::reducing},
                      .end = {.state = gather ? UnitState::gathered : UnitState::sharded}};
  }
  if (const auto* move = std::get_if<Copy>(&op.action)) {
    if (!move->unit.valid()) return std::nullopt;
    const Buffer& from = plan.buffer(op.operands[0].buffer);
    const Buffer& to = plan.buffer(op.operands[1].buffer);
    const bool whole = to.category == Category::gathered && op.operands[1].bytes == to.bytes.count();
    return UnitChange{.unit = move->unit,
                      .begin = UnitMoment{.state = UnitState::moving, .memory = from.memory},
                      .end = {.state = whole ? UnitState::gathered : UnitState::sharded, .memory = to.memory}};
  }
  if (std::holds_alternative<Initialize>(op.action)) {
    const Buffer& made = plan.buffer(op.operands[0].buffer);
    if (made.category != Category::parameter || made.memory == Memory::device) return std::nullopt;
    return UnitChange{.unit = made.unit, .begin = {}, .end = {.state = UnitState::sharded, .memory = made.memory}};
  }
  return std::nullopt;
}

std::optional<Memory> unit_rests_after(const Plan& plan, const Buffer& released) {
  if (released.category != Category::gathered || !released.unit.valid()) return std::nullopt;
  const auto unit = static_cast<std::size_t>(released.unit.value);
  return unit < plan.placed.resting.size() ? plan.placed.resting[unit].parameters : Memory::device;
}

}  // namespace shard::plan
