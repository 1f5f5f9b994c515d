// Small builders for operands, shared by the passes.
#pragma once

#include <algorithm>
#include <span>

#include "sim/ir/plan.h"

namespace shard::plan {

[[nodiscard]] inline Operand whole(const Plan& plan, BufferId buffer, Access access) {
  return Operand{.buffer = buffer, .offset = 0, .bytes = plan.buffer(buffer).bytes.count(), .access = access};
}
[[nodiscard]] inline Operand reads(const Plan& plan, BufferId buffer) {
  return whole(plan, buffer, Access::read);
}
[[nodiscard]] inline Operand writes(const Plan& plan, BufferId buffer) {
  return whole(plan, buffer, Access::write);
}
[[nodiscard]] inline Operand updates(const Plan& plan, BufferId buffer) {
  return whole(plan, buffer, Access::update);
}

/// The operand is all of its buffer, on every rank.
[[nodiscard]] inline bool is_whole(const Plan& plan, const Operand& o) {
  return o.rank_stride == 0 && o.offset == 0 && o.bytes == plan.buffer(o.buffer).bytes.count();
}

/// The operands of an operator's op: buffer_of(slot) names the buffer of each slot of its signature, in their order.
template <class BufferOf>
[[nodiscard]] List<Operand> operands_of(const Plan& plan, const Compute& c, const BufferOf& buffer_of) {
  const model::Signature slots = signature(c);
  const std::span<Operand> operands = plan.pool->make<Operand>(slots.size());
  std::size_t i = 0;
  for (const model::Slot& slot : slots) {
    const BufferId buffer = buffer_of(slot);  // may add it to the plan
    operands[i++] = whole(plan, buffer, slot.access);
  }
  return List<Operand>(operands);
}

/// Gives the op an operand that its action `c` now says it has.
inline void insert_operand(const Plan& plan, Op& op, const Compute& c, model::Role role, const Operand& operand) {
  const std::size_t position = signature(c).position(role);
  plan.add_operand(op, operand);
  const std::span<Operand> operands = plan.own_operands(op);
  std::rotate(operands.begin() + static_cast<std::ptrdiff_t>(position), operands.end() - 1, operands.end());
}

[[nodiscard]] inline std::int64_t element_bytes(const Plan& plan, BufferId buffer) {
  return bytes_per_element(plan.buffer(buffer).dtype);
}

/// Of losses and other scalars, which are fp32 in every precision.
inline constexpr std::int64_t kScalarBytes = 4;

}  // namespace shard::plan
