// What an op and a change of memory are called in a trace.
#include "sim/plan/events.h"

#include "sim/plan/effects.h"

namespace shard::plan {

UnitId unit_of(const Op& op) {
  if (const auto* c = std::get_if<Communicate>(&op.action)) return c->unit;
  if (const auto* a = std::get_if<Accumulate>(&op.action)) return a->unit;
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

std::optional<std::pair<UnitState, UnitState>> unit_states_of(const Op& op) {
  const auto* call = std::get_if<Communicate>(&op.action);
  if (call == nullptr || !call->unit.valid()) return std::nullopt;
  if (call->kind == Collective::all_gather) return std::pair{UnitState::gathering, UnitState::gathered};
  return std::pair{UnitState::reducing, UnitState::sharded};
}

bool unit_rests_after(const Buffer& released) {
  return released.category == Category::gathered && released.unit.valid();
}

}  // namespace shard::plan
