// Pass accumulate: the micro-batch repeated, each with its data, its loss slot and its place in the gradient tree.
#include <vector>

#include "sim/plan/passes/operands.h"
#include "sim/plan/passes/passes.h"
#include "sim/plan/tree.h"

namespace shard::plan {
namespace {

/// Micro-batch of this step that micro-step j of rank r works on (DESIGN.md, "Numbers", rule 2).
LoadBatch dealt(const Strategy& s, std::int64_t j) {
  if (s.reduces_every_micro_step()) return {.first = j * s.world_size, .rank_stride = 1};
  return {.first = j, .rank_stride = s.accumulation()};
}

/// Adds the leaf's gradients to what their buffers hold.
void into(Op& op, const std::vector<std::int32_t>& param_of) {
  for (Operand& o : op.operands) {
    if (!o.writes() || param_of[static_cast<std::size_t>(o.buffer.value)] < 0) continue;
    o.access = Access::update;
    std::get<Compute>(op.action).accumulate_weight = true;
  }
}

}  // namespace

Plan accumulate(Plan plan) {
  const Strategy& s = plan.strategy;
  const std::int64_t micro_steps = s.accumulation();
  // Strategies that reduce after every micro-step sum shards, which the shard pass adds; leaves then use one buffer.
  const bool local = !s.reduces_every_micro_step();
  const Tree tree = make_tree(micro_steps, s.reproducible, local);
  std::vector<std::int32_t> param_of(plan.buffers.size(), -1);  // by gradient buffer
  for (std::size_t p = 0; p < plan.gradients.size(); ++p)
    param_of[static_cast<std::size_t>(plan.gradients[p].value)] = static_cast<std::int32_t>(p);
  std::vector<std::vector<BufferId>> slots{plan.gradients};
  for (std::int32_t k = 1; local && k < tree.slots; ++k) {
    std::vector<BufferId>& slot = slots.emplace_back();
    for (BufferId id : plan.gradients) {
      Buffer copy = plan.buffer(id);
      copy.name += " @" + std::to_string(k);
      slot.push_back(plan.add_buffer(std::move(copy)));
    }
  }
  const BufferId losses = plan.add_buffer(
      {.name = "losses of this rank", .category = Category::input, .bytes = Bytes{micro_steps * kElementBytes}});
  const BufferId loss_value = plan.value_buffer(plan.graph->loss);
  const std::vector<Op> body = std::move(plan.find(Phase::steady_step)->ops);
  std::vector<Op> ops;
  ops.reserve(body.size() * static_cast<std::size_t>(micro_steps));
  for (std::int64_t j = 0; j < micro_steps; ++j) {
    const TreeStep& step = tree.steps[static_cast<std::size_t>(j)];
    const auto micro_step = static_cast<std::int32_t>(j);
    ops.push_back({.name = "load batch",
                   .part = Part::data,
                   .micro_step = micro_step,
                   .action = dealt(s, j),
                   .operands = {writes(plan, plan.value_buffer(plan.graph->input)),
                                writes(plan, plan.value_buffer(plan.graph->target))}});
    for (Op op : body) {
      op.micro_step = micro_step;
      if (local && step.in_place) into(op, param_of);
      for (Operand& o : op.operands) {
        if (o.buffer == loss_value) {
          o.buffer = losses;
          o.offset = j * kElementBytes;
          o.bytes = kElementBytes;
          o.fresh = j == 0;
        } else if (const std::int32_t p = param_of[static_cast<std::size_t>(o.buffer.value)]; local && p >= 0) {
          o.buffer = slots[static_cast<std::size_t>(step.slot)][static_cast<std::size_t>(p)];
        }
      }
      ops.push_back(std::move(op));
    }
    for (const auto& [dst, src] : step.merges) {
      if (!local) break;
      for (std::size_t p = 0; p < plan.gradients.size(); ++p)
        ops.push_back({.name = "add gradient " + plan.model->parameters[p].name,
                       .part = Part::reduce,
                       .micro_step = micro_step,
                       .action = Accumulate{},
                       .operands = {updates(plan, slots[static_cast<std::size_t>(dst)][p]),
                                    reads(plan, slots[static_cast<std::size_t>(src)][p])}});
    }
  }
  plan.find(Phase::steady_step)->ops = std::move(ops);
  plan.losses = losses;
  plan.gradient_slots = std::move(slots);
  return plan;
}

}  // namespace shard::plan
