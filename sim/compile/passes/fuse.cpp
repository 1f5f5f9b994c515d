// Pass fuse: two ops become one where the target has a kernel for both, so that what is between them is not read again.
#include <optional>
#include <utility>
#include <vector>

#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"

namespace shard::plan {
namespace {

using model::Role;

/// The op that does both, where `then` begins with what `first` makes and the target has one.
std::optional<Op> fused(const Draft& plan, const Op& first, const Op& then) {
  const auto* a = std::get_if<Compute>(&first.action);
  const auto* b = std::get_if<Compute>(&then.action);
  if (a == nullptr || b == nullptr || a->then.present() || first.part != then.part) return std::nullopt;
  if (b->direction != model::direction_behind(a->direction)) return std::nullopt;
  if (!plan.target.fuses(a->kind, a->direction, b->kind)) return std::nullopt;
  const model::Signature of_first = signature(*a);
  const model::Signature of_then = signature(*b);
  if (first.operands[of_first.position(Role::y)].buffer != then.operands[of_then.position(Role::x)].buffer)
    return std::nullopt;
  Compute c = *a;
  c.then = {.kind = b->kind, .source = b->source, .attributes = b->attributes};
  Op op = first;
  op.name = plan.text(first.name, " + ", then.name);
  op.action = c;
  const model::Signature slots = signature(c);
  const std::span<Operand> operands = plan.pool->make<Operand>(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const model::Slot& slot = slots[i];
    operands[i] = slot.then ? then.operands[of_then.position(slot.made(), slot.index)]
                            : first.operands[of_first.position(slot.made(), slot.index)];
    operands[i].access = slot.access;
  }
  op.operands = List<Operand>(operands);
  return op;
}

}  // namespace

Draft fuse(Draft plan) {
  if (plan.target.device == Device::cpu) return plan;
  std::vector<Op>& ops = plan.find(Phase::steady_step)->ops;
  std::vector<Op> result;
  result.reserve(ops.size());
  for (const Op& op : ops) {
    if (!result.empty())
      if (const std::optional<Op> both = fused(plan, result.back(), op)) {
        result.back() = *both;
        continue;
      }
    result.push_back(op);
  }
  ops = std::move(result);
  return plan;
}

}  // namespace shard::plan
