// Pass evaluate: the mean loss of a global batch and nothing more, in a phase of its own.
#include <algorithm>
#include <variant>
#include <vector>

#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"

namespace shard::plan {
namespace {

/// Which buffers hold, between two ops, what a later one needs.
class Needs {
 public:
  explicit Needs(const Plan& plan) : plan_(plan), needed_(plan.buffers.size(), false) {}

  /// What an owner sends and has anyway it makes too: there the others get it.
  [[nodiscard]] bool makes(const Op& op) const {
    const bool sent = is_broadcast(op);
    return std::ranges::any_of(op.operands,
                               [&](const Operand& o) { return (sent || o.writes()) && is_needed(o.buffer); });
  }
  /// In front of an op that is needed.
  void step_over(const Op& op) {
    const bool sent = is_broadcast(op);
    for (const Operand& o : op.operands)
      if (!o.reads() && (o.fresh || is_whole(plan_, o))) set(o.buffer, false);
    for (const Operand& o : op.operands)
      if (o.reads() && !o.fresh) set(o.buffer, !(sent && plan_.buffer(o.buffer).persistent));
  }

 private:
  [[nodiscard]] static bool is_broadcast(const Op& op) {
    const auto* call = std::get_if<Communicate>(&op.action);
    return call != nullptr && call->kind == Collective::broadcast;
  }
  [[nodiscard]] bool is_needed(BufferId id) const { return needed_[static_cast<std::size_t>(id.value)]; }
  void set(BufferId id, bool needed) { needed_[static_cast<std::size_t>(id.value)] = needed; }

  const Plan& plan_;
  std::vector<bool> needed_;
};

[[nodiscard]] Op without_dropping(Op op) {
  if (auto* compute = std::get_if<Compute>(&op.action)) compute->drops = false;
  return op;
}

}  // namespace

Draft evaluate(Draft plan) {
  if (!plan.strategy.evaluates) return plan;
  const std::vector<Op>& step = plan.find(Phase::steady_step)->ops;
  PhaseOps phase{.phase = Phase::evaluate, .ops = {}};
  Needs needs(plan);
  for (auto op = step.rbegin(); op != step.rend(); ++op) {
    if (!std::holds_alternative<MeanLoss>(op->action) && !needs.makes(*op)) continue;
    needs.step_over(*op);
    phase.ops.push_back(without_dropping(*op));
  }
  std::ranges::reverse(phase.ops);
  plan.phases.push_back(std::move(phase));
  return plan;
}

}  // namespace shard::plan
