// Small builders for operands, shared by the passes.
#pragma once

#include "sim/plan/plan.h"

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

/// Elements are fp32 throughout.
inline constexpr std::int64_t kElementBytes = 4;

}  // namespace shard::plan
