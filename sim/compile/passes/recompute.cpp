// Pass recompute: activation checkpointing per block. A block keeps its input, or the results of its costly operators;
// the rest is made again for its backward.
#include <map>
#include <set>
#include <utility>

#include "sim/compile/passes/passes.h"

namespace shard::plan {
namespace {

struct Block {
  std::vector<std::size_t> forward;  ///< indices of its ops
  std::vector<std::size_t> backward;
};

/// The forward ops of a block needed to make `wanted` again, in order.
std::vector<std::size_t> slice(const std::vector<Op>& ops, const std::vector<std::size_t>& forward,
                               std::set<std::int32_t> wanted) {
  std::vector<std::size_t> needed;
  for (auto it = forward.rbegin(); it != forward.rend(); ++it) {
    const Op& op = ops[*it];
    bool makes = false;
    for (const Operand& o : op.operands) makes = makes || (o.writes() && wanted.contains(o.buffer.value));
    if (!makes) continue;
    for (const Operand& o : op.operands)
      if (o.reads()) wanted.insert(o.buffer.value);
    needed.insert(needed.begin(), *it);
  }
  return needed;
}

/// What no backward op reads any more is not saved.
void unsave(Draft& plan, const std::vector<Op>& ops, std::set<std::int32_t> dropped) {
  for (const Op& op : ops) {
    if (op.part != Part::backward) continue;
    for (const Operand& o : op.operands)
      if (o.reads()) dropped.erase(o.buffer.value);
  }
  for (std::int32_t id : dropped)
    if (Buffer& buffer = plan.buffer(BufferId{id}); buffer.category == Category::activation)
      buffer.category = Category::workspace;
}

/// `inserted`: by the index of the op that they stand before.
std::vector<Op> with_inserted(const std::vector<Op>& ops, const std::map<std::size_t, std::vector<Op>>& inserted) {
  std::vector<Op> result;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (const auto it = inserted.find(i); it != inserted.end())
      result.insert(result.end(), it->second.begin(), it->second.end());
    result.push_back(ops[i]);
  }
  return result;
}

}  // namespace

Draft recompute(Draft plan) {
  if (plan.strategy.recompute == Recompute::none) return plan;
  std::vector<Op>& ops = plan.find(Phase::steady_step)->ops;
  std::map<std::int32_t, Block> blocks;
  std::set<std::int32_t> overwritten;  // backward puts gradients in their place (logits): no values any more
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].part == Part::backward)
      for (const Operand& o : ops[i].operands)
        if (o.writes()) overwritten.insert(o.buffer.value);
    if (ops[i].block < 0) continue;
    Block& block = blocks[ops[i].block];
    if (ops[i].part == Part::backward)
      block.backward.push_back(i);
    else if (plan.strategy.recompute == Recompute::block || model::row(std::get<Compute>(ops[i].action).kind).cheap)
      block.forward.push_back(i);
  }
  const auto is_value = [&](BufferId id) {
    const std::int32_t v = id.value - plan.values_begin;
    return v >= 0 && v < static_cast<std::int32_t>(plan.graph->values.size());
  };
  std::map<std::size_t, std::vector<Op>> inserted;  // before this op
  std::set<std::int32_t> dropped;
  for (const auto& [index, block] : blocks) {
    if (block.backward.empty()) continue;
    std::set<std::int32_t> made;
    for (std::size_t i : block.forward)
      for (const Operand& o : ops[i].operands)
        if (o.writes()) made.insert(o.buffer.value);
    std::set<std::int32_t> wanted;
    for (std::size_t i : block.backward)
      for (const Operand& o : ops[i].operands)
        if (o.reads() && made.contains(o.buffer.value) && !overwritten.contains(o.buffer.value))
          wanted.insert(o.buffer.value);
    if (wanted.empty()) continue;
    std::map<std::int32_t, BufferId> again;
    const auto renamed = [&](BufferId id) {
      if (!made.contains(id.value)) return id;
      if (const auto it = again.find(id.value); it != again.end()) return it->second;
      Buffer copy = plan.buffer(id);
      copy.name = plan.text(copy.name, "'");
      copy.category = wanted.contains(id.value) ? Category::activation : Category::workspace;
      return again[id.value] = plan.add_buffer(copy);
    };
    std::vector<Op>& copies = inserted[block.backward.front()];
    for (std::size_t i : slice(ops, block.forward, wanted)) {
      Op copy = ops[i];
      copy.part = Part::recompute;
      copy.name = plan.text(copy.name, " again");
      for (Operand& o : plan.own_operands(copy)) {
        o.buffer = renamed(o.buffer);
        // What is read again has to be kept.
        if (Buffer& kept = plan.buffer(o.buffer);
            o.reads() && !made.contains(o.buffer.value) && is_value(o.buffer) && kept.category == Category::workspace)
          kept.category = Category::activation;
      }
      copies.push_back(copy);
    }
    for (std::size_t i : block.backward)
      for (Operand& o : plan.own_operands(ops[i]))
        if (wanted.contains(o.buffer.value)) {
          dropped.insert(o.buffer.value);
          o.buffer = renamed(o.buffer);
        }
  }
  unsave(plan, ops, std::move(dropped));
  ops = with_inserted(ops, inserted);
  return plan;
}

}  // namespace shard::plan
