// Time of any op of a plan on a cluster, composed of the formula families of this folder.
#pragma once

#include <array>

#include "sim/cluster/cluster.h"
#include "sim/cost/measured_times.h"
#include "sim/cost/rates.h"
#include "sim/ir/effects.h"
#include "sim/ir/plan.h"
#include "traces/base/units.h"

namespace shard::cost {

/// Flops, bytes and what is sent come from plan::effects(), the only code that knows. Pure; both arguments of the
/// constructor are borrowed. The time is that of the op alone: waiting is the engine's.
class OpCost {
 public:
  OpCost(const plan::Plan& plan, const cluster::Cluster& cluster);
  [[nodiscard]] Seconds operator()(const plan::Op& op) const { return (*this)(op, plan::effects(plan_, op)); }
  /// The same where the op's effects are known already.
  [[nodiscard]] Seconds operator()(const plan::Op& op, const plan::Effects& effects) const;

 private:
  const plan::Plan& plan_;
  const cluster::Cluster& cluster_;
  cluster::Layout layout_;
  std::array<cluster::Layout, plan::kGroupCount> groups_;  ///< of the plan's rank, by Group
  std::int32_t ranks_per_host_;
  Rates rates_;
  Rates host_;
  MeasuredTimes measured_;
};

/// The same for one op.
[[nodiscard]] inline Seconds cost(const plan::Plan& plan, const plan::Op& op, const cluster::Cluster& cluster) {
  return OpCost(plan, cluster)(op);
}

}  // namespace shard::cost
