// Pass schedule: where gathers and tree nodes stand in plan order, ids, the first and the steady step, dependencies.
#include <algorithm>
#include <limits>
#include <vector>

#include "sim/plan/dependencies.h"
#include "sim/plan/passes/passes.h"

namespace shard::plan {
namespace {

[[nodiscard]] bool is_collective(const Op& op, Collective kind) {
  const auto* call = std::get_if<Communicate>(&op.action);
  return call != nullptr && call->kind == kind;
}

/// Moves the k-th gather of the step to where gather k - distance stands. One that would stand before the last use of
/// what its buffers held, or right behind it, is left out: the unit simply stays gathered, for no more memory.
std::vector<Op> hoist_gathers(std::vector<Op> ops, std::size_t buffers, std::int32_t distance) {
  if (distance <= 0) return ops;
  constexpr std::size_t kDropped = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> place(ops.size());
  std::vector<std::size_t> gathers;
  std::vector<std::size_t> touched(buffers, 0);        // by buffer: behind its last touch so far, 0 before the first
  std::vector<std::size_t> others(ops.size() + 1, 0);  // ops but gathers before each op
  for (std::size_t i = 0; i < ops.size(); ++i) {
    place[i] = i;
    const bool gather = ops[i].part == Part::gather && is_collective(ops[i], Collective::all_gather);
    others[i + 1] = others[i] + (gather ? 0 : 1);
    if (gather) {
      const auto back = static_cast<std::size_t>(distance);
      const std::size_t target =
          gathers.size() >= back ? gathers[gathers.size() - back] : (gathers.empty() ? i : gathers[0]);
      bool in_use = false;
      for (const Operand& o : ops[i].operands)
        if (const std::size_t behind = touched[static_cast<std::size_t>(o.buffer.value)]; o.writes() && behind > 0)
          in_use = in_use || others[behind] >= others[target];
      place[i] = in_use ? kDropped : target;
      if (!in_use) gathers.push_back(i);
    }
    for (const Operand& o : ops[i].operands) touched[static_cast<std::size_t>(o.buffer.value)] = i + 1;
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (place[i] != kDropped) order.push_back(i);
  // A moved gather stands after the gather whose place it takes, and before the other op there.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (place[a] != place[b]) return place[a] < place[b];
    const bool ga = ops[a].part == Part::gather;
    const bool gb = ops[b].part == Part::gather;
    return ga && !gb;
  });
  std::vector<Op> result;
  result.reserve(ops.size());
  for (std::size_t i : order) result.push_back(std::move(ops[i]));
  return result;
}

/// A tree node over scattered gradients waits for its reduction, so it stands after the next reduction has started.
std::vector<Op> postpone_nodes(std::vector<Op> ops) {
  std::vector<Op> result;
  result.reserve(ops.size());
  std::vector<Op> waiting;
  const auto flush = [&] {
    for (Op& op : waiting) result.push_back(std::move(op));
    waiting.clear();
  };
  std::int32_t micro_step = -1;
  for (Op& op : ops) {
    if (op.micro_step != micro_step || is_collective(op, Collective::all_reduce)) flush();
    micro_step = op.micro_step;
    if (std::holds_alternative<Accumulate>(op.action)) {
      waiting.push_back(std::move(op));
      continue;
    }
    const bool reduction = is_collective(op, Collective::reduce_scatter);
    result.push_back(std::move(op));
    if (reduction) flush();
  }
  flush();
  return result;
}

}  // namespace

Plan schedule(Plan plan) {
  std::vector<Op>& step = plan.find(Phase::steady_step)->ops;
  if (plan.strategy.effective_stage() == 3)
    step = hoist_gathers(std::move(step), plan.buffers.size(), plan.strategy.prefetch);
  if (plan.strategy.reduces_every_micro_step()) step = postpone_nodes(std::move(step));
  std::int32_t next = 0;
  for (PhaseOps& phase : plan.phases) {
    for (Op& op : phase.ops) op.id = OpId{next++};
    std::erase_if(phase.ops, [](const Op& op) { return std::holds_alternative<Absent>(op.action); });
  }
  PhaseOps first{.phase = Phase::first_step, .ops = plan.find(Phase::steady_step)->ops};
  std::erase_if(plan.find(Phase::steady_step)->ops, [](const Op& op) { return op.first_step_only; });
  const auto steady = std::find_if(plan.phases.begin(), plan.phases.end(),
                                   [](const PhaseOps& p) { return p.phase == Phase::steady_step; });
  plan.phases.insert(steady, std::move(first));
  for (PhaseOps& phase : plan.phases) order_buffers(plan, phase);
  return plan;
}

}  // namespace shard::plan
