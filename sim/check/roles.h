// What each operand of a compute op has to be: the operator's signature, with sizes and types. Rule P9.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan::verification {

using model::Role;

struct Expected {
  model::Slot slot;
  model::ValueId value{};  ///< that the operand holds, or is the gradient of, where it is about one
  std::int64_t elems = 0;  ///< exactly; workspace: at least
  Dtype dtype = Dtype::f32;
};

/// The operator that the op does behind its own; null where there is none.
[[nodiscard]] const model::Operator* then_of(const Plan& plan, const Compute& c);

/// The operands of the op in order; empty when the operator has no op of that direction, or nothing wants what it
/// makes.
[[nodiscard]] std::vector<Expected> expected_operands(const Plan& plan, const model::Operator& op, const Compute& c);

/// Bytes of workspace that the op needs.
[[nodiscard]] Bytes expected_workspace(const Plan& plan, const Compute& c);

}  // namespace shard::plan::verification
