// What each operand of a compute op is, per operator and direction: the tables of SPEC.md as code. Rule P9.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan::verification {

enum class Role : std::uint8_t {
  value,                    ///< read: a value
  output,                   ///< write: a value
  becomes_result,           ///< update: the value of input 0 becomes `value`
  result_gradient,          ///< read: the whole gradient of the operator's result
  gradient_in_place,        ///< update: the whole gradient of the result becomes that of input `index`
  result_becomes_gradient,  ///< update: the value of input 0 becomes its gradient
  input_gradient,           ///< write or update: receives the contribution to the gradient of input `index`
  parameter,                ///< read: parameter `index` of the operator
  parameter_gradient,       ///< write or update: receives the contribution to the gradient of parameter `index`
  loss_scale,               ///< read: the loss scale of this step
  workspace,                ///< write
};

struct Slot {
  Role role{};
  std::int32_t index = 0;  ///< of the operator's input or parameter, where the role has one
  model::ValueId value{};  ///< roles value, output and becomes_result
  std::int64_t elems = 0;  ///< exactly; workspace: at least
  Dtype dtype = Dtype::f32;
};

/// The operands of the op in order; empty when the operator has no op of that direction. `operands` tells variants
/// apart (rotary and gelu backward: in place or not; norms: with or without the gradient of the input).
[[nodiscard]] std::vector<Slot> slots_of(const Plan& plan, const model::Operator& op, Direction direction,
                                         std::size_t operands);

}  // namespace shard::plan::verification
