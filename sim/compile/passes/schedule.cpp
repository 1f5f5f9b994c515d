// Pass schedule: where fetches and tree nodes stand in plan order, ids, the first and the steady step.
#include <algorithm>
#include <limits>
#include <vector>

#include "sim/compile/passes/fetches.h"
#include "sim/compile/passes/passes.h"
#include "sim/compile/share_transients.h"

namespace shard::plan {
namespace {

[[nodiscard]] bool is_collective(const Op& op, Collective kind) {
  const auto* call = std::get_if<Communicate>(&op.action);
  return call != nullptr && call->kind == kind;
}

/// Absent here where other ranks have that.
[[nodiscard]] bool is_absent(const Op& op, Absent::Lacks lacks) {
  const auto* absent = std::get_if<Absent>(&op.action);
  return absent != nullptr && absent->lacks == lacks;
}

/// Moves the k-th fetch of the step (a gather, or moves of a unit that rests on the host) to where fetch k - distance
/// stands. One that would stand before the last use of what its buffers held, or right behind it, is left out: the unit
/// simply stays there, for no more memory.
std::vector<Op> hoist_fetches(const Plan& plan, std::vector<Op> ops, std::int32_t distance) {
  if (distance <= 0) return ops;
  constexpr std::size_t kDropped = std::numeric_limits<std::size_t>::max();
  const std::vector<Fetch> fetches = fetches_of(plan, ops);
  std::vector<std::size_t> place(ops.size());
  std::vector<bool> fetching(ops.size(), false);
  std::vector<std::size_t> kept;                             // where the fetches that are kept begin
  std::vector<std::size_t> touched(plan.buffers.size(), 0);  // behind its last touch so far, 0 before the first
  std::vector<std::size_t> others(ops.size() + 1, 0);        // ops but fetches before each op
  auto fetch = fetches.begin();
  for (std::size_t i = 0; i < ops.size();) {
    const bool begins = fetch != fetches.end() && fetch->begin == i;
    const std::size_t end = begins ? fetch->end : i + 1;
    std::size_t target = i;
    if (begins) {
      const auto back = static_cast<std::size_t>(distance);
      target = kept.size() >= back ? kept[kept.size() - back] : (kept.empty() ? i : kept[0]);
      bool in_use = false;
      for (std::size_t k = i; k < end; ++k) {
        fetching[k] = true;
        // An owner, who only reads, sends along with the others' gathers.
        const bool owned = is_collective(ops[k], Collective::broadcast);
        for (const Operand& o : ops[k].operands)
          if (const std::size_t behind = touched[static_cast<std::size_t>(o.buffer.value)];
              (o.writes() || owned) && behind > 0)
            in_use = in_use || others[behind] >= others[target];
      }
      if (in_use)
        target = kDropped;
      else
        kept.push_back(i);
      ++fetch;
    }
    for (std::size_t k = i; k < end; ++k) {
      place[k] = target;
      others[k + 1] = others[k] + (begins ? 0 : 1);
      for (const Operand& o : ops[k].operands) touched[static_cast<std::size_t>(o.buffer.value)] = k + 1;
    }
    i = end;
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (place[i] != kDropped) order.push_back(i);
  // A moved fetch stands after the fetch whose place it takes, and before the other op there.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (place[a] != place[b]) return place[a] < place[b];
    return fetching[a] && !fetching[b];
  });
  std::vector<Op> result;
  result.reserve(ops.size());
  for (std::size_t i : order) result.push_back(ops[i]);
  return result;
}

/// A tree node over scattered gradients, or its move to the host, waits for its reduction, so it stands after the next
/// reduction has started.
std::vector<Op> postpone_nodes(std::vector<Op> ops) {
  std::vector<Op> result;
  result.reserve(ops.size());
  std::vector<Op> waiting;
  const auto flush = [&] {
    result.insert(result.end(), waiting.begin(), waiting.end());
    waiting.clear();
  };
  std::int32_t micro_step = -1;
  for (const Op& op : ops) {
    const auto* call = std::get_if<Communicate>(&op.action);
    const bool of_gradients = call != nullptr && call->group != Group::tensor && call->kind == Collective::all_reduce;
    const bool brings_back = op.part == Part::reduce && op.stream == Stream::copy_in;
    if (op.micro_step != micro_step || of_gradients || is_absent(op, Absent::Lacks::all_reduce) || brings_back) flush();
    micro_step = op.micro_step;
    const bool offloads = op.part == Part::reduce && op.stream == Stream::copy_out;
    if (std::holds_alternative<Accumulate>(op.action) || is_absent(op, Absent::Lacks::accumulate) || offloads) {
      waiting.push_back(op);
      continue;
    }
    const bool reduction = is_collective(op, Collective::reduce_scatter) || is_collective(op, Collective::reduce);
    result.push_back(op);
    if (reduction) flush();
  }
  flush();
  return result;
}

}  // namespace

Draft schedule(Draft plan) {
  std::vector<Op>& step = plan.find(Phase::steady_step)->ops;
  step = hoist_fetches(plan, std::move(step), plan.strategy.prefetch);
  if (plan.strategy.reduces_every_micro_step()) step = postpone_nodes(std::move(step));
  if (is_foldable(plan.strategy.accumulation())) share_transients(plan);
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
  return plan;
}

}  // namespace shard::plan
