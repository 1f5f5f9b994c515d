// Pass accumulate: the micro-batch repeated, each with its data, its loss slot and its place in the gradient tree.
#include <utility>
#include <vector>

#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"
#include "sim/compile/tree.h"

namespace shard::plan {
namespace {

/// Adds the leaf's gradients to what their buffers hold.
void into(Op& op, std::span<Operand> operands, const std::vector<std::int32_t>& param_of) {
  for (Operand& o : operands) {
    if (!o.writes() || param_of[static_cast<std::size_t>(o.buffer.value)] < 0) continue;
    o.access = Access::update;
    std::get<Compute>(op.action).accumulate_weight = true;
  }
}

/// Where the data source writes input and target: their values, or fp32 buffers beside those that are stored smaller.
std::vector<BufferId> load_buffers(Draft& plan) {
  std::vector<BufferId> buffers;
  for (model::ValueId v : {plan.graph->input, plan.graph->target}) {
    const model::Value& value = plan.graph->values[static_cast<std::size_t>(v.value)];
    const Buffer& stored = plan.buffer(plan.value_buffer(v));
    buffers.push_back(stored.dtype == value.dtype ? plan.value_buffer(v)
                                                  : plan.add_buffer({.name = plan.text(stored.name, " as loaded"),
                                                                     .category = Category::input,
                                                                     .dtype = value.dtype,
                                                                     .bytes = value.bytes()}));
  }
  return buffers;
}

/// In turn over the ranks where every micro-step's gradients leave the rank, else one run of micro-batches after
/// another: so that every reduction closes a subtree of neighbours.
Dealing dealing_of(const Strategy& s) {
  const std::int64_t of_group = s.accumulation() * s.shard_degree();
  if (s.reduces_every_micro_step())
    return {.micro_stride = s.shard_degree(), .shard_stride = 1, .replica_stride = of_group};
  return {.micro_stride = 1, .shard_stride = s.accumulation(), .replica_stride = of_group};
}

/// The tree of the micro-steps that the plan is to have.
void grow_tree(Draft& plan, bool direct) {
  const Strategy& s = plan.strategy;
  if (!plan.folds || !is_foldable(s.accumulation())) {
    plan.tree = make_tree(s.accumulation(), s.reproducible, direct);
    return;
  }
  FoldedTree folded = make_folded_tree(s.accumulation(), s.reproducible, direct);
  plan.tree = std::move(folded.tree);
  plan.micro_step_times = std::move(folded.times);
}

void load_batch(const Draft& plan, std::vector<Op>& ops, std::int32_t micro_step, const std::vector<BufferId>& loaded) {
  ops.push_back({.name = "load batch",
                 .part = Part::data,
                 .micro_step = micro_step,
                 .action = LoadBatch{.first = micro_step * plan.dealing.micro_stride,
                                     .shard_stride = plan.dealing.shard_stride,
                                     .replica_stride = plan.dealing.replica_stride},
                 .operands = plan.list({writes(plan, loaded[0]), writes(plan, loaded[1])})});
  const model::ValueId values[] = {plan.graph->input, plan.graph->target};
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    const BufferId stored = plan.value_buffer(values[i]);
    if (stored == loaded[i]) continue;
    ops.push_back({.name = plan.text("store ", plan.buffer(stored).name),
                   .part = Part::data,
                   .micro_step = micro_step,
                   .action = Copy{},
                   .operands = plan.list({reads(plan, loaded[i]), writes(plan, stored)})});
  }
}

}  // namespace

Draft accumulate(Draft plan) {
  const Strategy& s = plan.strategy;
  plan.dealing = dealing_of(s);
  // Where leaves have a buffer of their own, the shard pass adds the tree's nodes.
  const bool local = !s.has_leaves();
  grow_tree(plan, local);
  const Tree& tree = plan.tree;
  const auto micro_steps = static_cast<std::int64_t>(tree.steps.size());
  std::vector<std::int32_t> param_of(plan.buffers.size(), -1);  // by gradient buffer
  for (std::size_t p = 0; p < plan.gradients.size(); ++p)
    if (plan.gradients[p].valid())
      param_of[static_cast<std::size_t>(plan.gradients[p].value)] = static_cast<std::int32_t>(p);
  std::vector<std::vector<BufferId>> slots{plan.gradients};
  for (std::int32_t k = 1; local && k < tree.slots; ++k) {
    std::vector<BufferId>& slot = slots.emplace_back();
    for (BufferId id : plan.gradients) {
      if (!id.valid()) {  // a frozen parameter's
        slot.push_back(id);
        continue;
      }
      Buffer copy = plan.buffer(id);
      copy.name = plan.text(copy.name, " @", std::to_string(k));
      slot.push_back(plan.add_buffer(copy));
    }
  }
  const BufferId losses = plan.add_buffer(
      {.name = "losses of this rank", .category = Category::input, .bytes = Bytes{s.accumulation() * kScalarBytes}});
  const BufferId loss_value = plan.value_buffer(plan.graph->loss);
  const std::vector<BufferId> loaded = load_buffers(plan);
  const std::vector<Op> body = std::move(plan.find(Phase::steady_step)->ops);
  std::vector<Op> ops;
  ops.reserve(body.size() * static_cast<std::size_t>(micro_steps));
  for (std::int64_t j = 0; j < micro_steps; ++j) {
    const TreeStep& step = tree.steps[static_cast<std::size_t>(j)];
    const auto micro_step = static_cast<std::int32_t>(j);
    load_batch(plan, ops, micro_step, loaded);
    for (Op op : body) {
      op.micro_step = micro_step;
      const std::span<Operand> operands = plan.own_operands(op);
      if (local && step.in_place) into(op, operands, param_of);
      for (Operand& o : operands) {
        if (o.buffer == loss_value) {
          o.buffer = losses;
          o.offset = j * kScalarBytes;
          o.bytes = kScalarBytes;
          o.fresh = j == 0;
        } else if (const std::int32_t p = param_of[static_cast<std::size_t>(o.buffer.value)]; local && p >= 0) {
          o.buffer = slots[static_cast<std::size_t>(step.slot)][static_cast<std::size_t>(p)];
        }
      }
      ops.push_back(op);
    }
    for (const auto& [dst, src] : step.merges) {
      if (!local) break;
      for (std::size_t p = 0; p < plan.gradients.size(); ++p) {
        if (!plan.gradients[p].valid()) continue;
        ops.push_back({.name = plan.text("add gradient ", plan.model->parameters[p].name),
                       .part = Part::reduce,
                       .micro_step = micro_step,
                       .action = Accumulate{},
                       .operands = plan.list({updates(plan, slots[static_cast<std::size_t>(dst)][p]),
                                              reads(plan, slots[static_cast<std::size_t>(src)][p])})});
      }
    }
  }
  plan.find(Phase::steady_step)->ops = std::move(ops);
  plan.losses = losses;
  plan.gradient_slots = std::move(slots);
  return plan;
}

}  // namespace shard::plan
