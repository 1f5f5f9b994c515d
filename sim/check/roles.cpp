// What each operand of a compute op has to be.
#include "sim/check/roles.h"

namespace shard::plan::verification {

Bytes expected_workspace(const Plan& plan, const Compute& c) {
  return plan.target.workspace(c.kind, c.direction, *c.attributes);
}

const model::Operator* then_of(const Plan& plan, const Compute& c) {
  return c.then.present() ? &plan.graph->operators[static_cast<std::size_t>(c.then.source)] : nullptr;
}

std::vector<Expected> expected_operands(const Plan& plan, const model::Operator& op, const Compute& c) {
  if (model::exchanges(op.kind)) return {};  // collectives
  const model::Signature slots = signature(c);
  if (c.direction != Direction::forward && !slots.makes_gradient()) return {};
  std::vector<Expected> operands;
  for (const model::Slot& slot : slots) {
    const model::Operator& of = slot.then ? *then_of(plan, c) : op;
    Expected e{.slot = slot,
               .value = model::value_of(of, slot),
               .elems = model::elements(*plan.graph, plan.model->parameters, of, slot),
               .dtype = model::dtype(*plan.graph, of, slot, plan.strategy.storage())};
    if (slot.role == Role::workspace) e.elems = expected_workspace(plan, c).count() / bytes_per_element(Dtype::f32);
    operands.push_back(e);
  }
  return operands;
}

}  // namespace shard::plan::verification
