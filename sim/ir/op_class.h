// Kinds of ops whose times obey one law each, their names, and the quantities that such a time grows with.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "sim/ir/plan.h"
#include "traces/base/units.h"

namespace shard::plan {

/// A kind of op as far as its speed is concerned: an operator in one direction ("linear backward_weight"), a collective
/// ("all_gather"), two operators in one op ("add forward + layer_norm forward"), an optimizer ("adamw"), or an op that
/// moves or controls ("copy", "accumulate", "decide").
struct OpClass {
  std::size_t index = 0;  ///< below kOpClasses
  friend bool operator==(const OpClass&, const OpClass&) = default;
};

inline constexpr std::size_t kDirections = static_cast<std::size_t>(Direction::backward_weight) + 1;
inline constexpr std::size_t kOperatorClasses = (static_cast<std::size_t>(model::OperatorKind::last) + 1) * kDirections;
inline constexpr std::size_t kActionClasses = std::variant_size_v<Action>;
inline constexpr std::size_t kOptimizerClasses = static_cast<std::size_t>(OptimizerKind::adamw) + 1;
/// Operators, then actions, optimizers, collectives, operators in one op. Numbers of this program: files have the
/// names.
inline constexpr std::size_t kOpClasses = kOperatorClasses + kActionClasses + kOptimizerClasses +
                                          static_cast<std::size_t>(kCollectiveCount) + model::kFusions.size();

[[nodiscard]] OpClass class_of(const Op& op);
[[nodiscard]] std::string to_string(OpClass which);
/// The class of that name; nothing where there is none.
[[nodiscard]] std::optional<OpClass> op_class(std::string_view name);

/// What the time of an op grows with.
struct OpWork {
  double flops = 0;         ///< of an operator or an optimizer step, as effects() counts them
  double weight_bytes = 0;  ///< of parameters and their gradients, as often as they are read and written
  double bytes = 0;         ///< of all other operands; of a collective, what a rank takes from others
  [[nodiscard]] double moved() const { return weight_bytes + bytes; }
};

/// Of a table only the rows that its tokens name count. Of n members of a collective each takes (n - 1) / n of the full
/// buffer from others, in an all-reduce twice, all of it in a broadcast or reduce.
[[nodiscard]] OpWork work_of(const Plan& plan, const Op& op);

}  // namespace shard::plan
