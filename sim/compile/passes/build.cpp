// Pass build: the model's forward operators on one micro-batch.
#include <cassert>

#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"

namespace shard::plan {
namespace {

using model::Role;

/// The forward op of an operator.
Op forward(Draft& plan, std::size_t i) {
  const model::Operator& source = plan.graph->operators[i];
  const Bytes workspace = plan.target.workspace(source.kind, Direction::forward, source.attributes);
  const Compute action{.kind = source.kind,
                       .direction = Direction::forward,
                       .source = static_cast<std::int32_t>(i),
                       .attributes = &source.attributes,
                       .workspace = workspace.count() > 0};
  const auto buffer_of = [&](const model::Slot& slot) {
    switch (slot.role) {
      case Role::x:
      case Role::y:
      case Role::statistic: return plan.value_buffer(model::value_of(source, slot));
      case Role::p: return BufferId{source.params[static_cast<std::size_t>(slot.index)].value};
      case Role::workspace:
        return plan.add_buffer(
            {.name = plan.text(source.name, ".workspace"), .category = Category::workspace, .bytes = workspace});
      case Role::none:
      case Role::dy:
      case Role::dx:
      case Role::dp:
      case Role::loss_scale: break;
    }
    assert(false && "no operand of a forward op");
    return BufferId{};
  };
  return {.name = std::string_view(source.name),
          .part = Part::forward,
          .block = source.block,
          .action = action,
          .operands = operands_of(plan, action, buffer_of)};
}

}  // namespace

Draft build(std::shared_ptr<const model::Model> model, const Strategy& strategy, std::int32_t rank) {
  Draft plan;
  plan.strategy = strategy;
  plan.target = strategy.target();
  plan.topology = strategy.topology();
  plan.micro_batches = strategy.micro_batches();
  plan.rank = rank;
  plan.graph =
      std::make_shared<const model::Graph>(model::build_graph(*model, strategy.micro_batch, strategy.sequence));
  plan.model = std::move(model);
  for (const Parameter& p : plan.model->parameters) {
    plan.add_buffer({.name = std::string_view(p.name),
                     .category = Category::parameter,
                     .dtype = strategy.storage(),
                     .bytes = bytes_of(strategy.storage(), p.elems),
                     .persistent = true});
  }
  plan.values_begin = static_cast<std::int32_t>(plan.buffers.size());
  for (std::size_t v = 0; v < plan.graph->values.size(); ++v) {
    const model::Value& value = plan.graph->values[v];
    const model::ValueId id{static_cast<std::int32_t>(v)};
    const bool data = id == plan.graph->input || id == plan.graph->target || id == plan.graph->loss;
    const Dtype stored = model::stored_as(value, strategy.storage());
    plan.value_buffers.push_back(plan.add_buffer({.name = std::string_view(value.name),
                                                  .category = data ? Category::input : Category::workspace,
                                                  .dtype = stored,
                                                  .bytes = bytes_of(stored, Elems{value.elements()})}));
  }
  for (const model::Operator& op : plan.graph->operators)
    if (model::in_place(op.kind))
      plan.value_buffers[static_cast<std::size_t>(op.outputs[0].value)] = plan.value_buffer(op.inputs[0]);
  PhaseOps step{.phase = Phase::steady_step, .ops = {}};
  for (std::size_t i = 0; i < plan.graph->operators.size(); ++i)
    if (const Op op = forward(plan, i); !op.operands.empty()) step.ops.push_back(op);
  plan.phases.push_back(std::move(step));
  return plan;
}

}  // namespace shard::plan
