// A plan in the making: with what only passes need while they work.
#pragma once

#include <memory>
#include <vector>

#include "sim/compile/tree.h"
#include "sim/ir/plan.h"

namespace shard::plan {

/// Passes hand it on; what leaves the compiler is the plan in it.
struct Draft : Plan {
  bool folds = false;  ///< equal micro-steps are there once, where that makes fewer of them
  Tree tree{};         ///< since accumulate: of this rank's micro-steps
  /// Where the same step folds and this plan does not: the folded one, whose offsets are this one's. Else null.
  std::shared_ptr<const Plan> folded{};
  std::int32_t values_begin = 0;
  std::vector<BufferId>
      value_buffers{};                ///< by value: values_begin + v, or that of the value in whose place it is made
  std::vector<BufferId> gradients{};  ///< until shard: the gradient buffer of each parameter
  std::vector<std::vector<BufferId>> gradient_slots{};  ///< until shard: [slot of the tree][parameter]
  /// Since shard, by flat: the reduced gradient, full (stages 0 and 1, owners) or its shard; invalid as
  /// flat_parameters.
  std::vector<BufferId> flat_gradients{};
  std::vector<std::vector<BufferId>> flat_gradient_slots{};  ///< since shard: by flat, the slots of the gradient tree
  [[nodiscard]] BufferId value_buffer(model::ValueId v) const {
    return value_buffers[static_cast<std::size_t>(v.value)];
  }
};

}  // namespace shard::plan
