// Pass tensor_parallel: exchanges between the ranks that share one model become collectives of the tensor group.
#include "sim/compile/passes/collectives.h"
#include "sim/compile/passes/passes.h"

namespace shard::plan {
namespace {

using model::OperatorKind;
using model::Role;

/// The collective that an exchanging operator is, or its backward.
Op exchange(Plan& plan, const Op& op, const Compute& c) {
  const bool sums = c.kind == OperatorKind::tensor_sum || c.kind == OperatorKind::tensor_input;
  const bool forward = c.direction == Direction::forward;
  const model::Signature slots = signature(c);
  const Operand own = op.operands[slots.position(forward ? Role::x : Role::dy)];
  const Operand all = op.operands[slots.position(forward ? Role::y : Role::dx)];
  const FlatPart part = sums ? FlatPart{.full = all} : FlatPart{.full = all, .shard = own};
  Op call = make_collective(plan, sums ? Collective::all_reduce : Collective::all_gather, Group::tensor, op.name,
                            op.part, UnitId{}, {part});
  call.block = op.block;
  call.micro_step = op.micro_step;
  return call;
}

}  // namespace

Draft tensor_parallel(Draft plan) {
  if (plan.strategy.tensor_parallel == 1) return plan;
  for (Op& op : plan.find(Phase::steady_step)->ops)
    if (const auto* c = std::get_if<Compute>(&op.action); c != nullptr && model::exchanges(c->kind))
      op = exchange(plan, op, *c);
  return plan;
}

}  // namespace shard::plan
