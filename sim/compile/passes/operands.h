// Small builders for operands, shared by the passes.
#pragma once

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

[[nodiscard]] inline std::int64_t element_bytes(const Plan& plan, BufferId buffer) {
  return bytes_per_element(plan.buffer(buffer).dtype);
}

/// Of losses and other scalars, which are fp32 in every precision.
inline constexpr std::int64_t kScalarBytes = 4;

}  // namespace shard::plan
