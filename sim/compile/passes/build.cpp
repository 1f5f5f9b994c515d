// Pass build: the model's forward operators on one micro-batch.
#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"
#include "sim/target/workspace.h"

namespace shard::plan {
namespace {

using model::OperatorKind;

/// Results of operators are stored in the strategy's type; statistics and the loss stay fp32.
Dtype stored_as(const model::Value& value, const Strategy& strategy) {
  return value.dtype == Dtype::f32 && !value.statistic ? strategy.storage() : value.dtype;
}

/// Operators whose result takes the place of their first input.
bool in_place(OperatorKind kind) {
  return kind == OperatorKind::dropout || kind == OperatorKind::tensor_sum || kind == OperatorKind::add_bias ||
         kind == OperatorKind::tensor_input || kind == OperatorKind::tensor_part;
}

/// Operators of which forward has no op: their result is their input.
bool renames(OperatorKind kind) {
  return kind == OperatorKind::tensor_input || kind == OperatorKind::tensor_part;
}

}  // namespace

Plan build(std::shared_ptr<const model::Model> model, const Strategy& strategy, std::int32_t rank) {
  Plan plan;
  plan.strategy = strategy;
  plan.rank = rank;
  plan.graph =
      std::make_shared<const model::Graph>(model::build_graph(*model, strategy.micro_batch, strategy.sequence));
  plan.model = std::move(model);
  for (const Parameter& p : plan.model->parameters) {
    plan.add_buffer({.name = p.name,
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
    const Dtype stored = stored_as(value, strategy);
    plan.value_buffers.push_back(plan.add_buffer({.name = value.name,
                                                  .category = data ? Category::input : Category::workspace,
                                                  .dtype = stored,
                                                  .bytes = bytes_of(stored, Elems{value.elements()})}));
  }
  for (const model::Operator& op : plan.graph->operators)
    if (in_place(op.kind))
      plan.value_buffers[static_cast<std::size_t>(op.outputs[0].value)] = plan.value_buffer(op.inputs[0]);
  PhaseOps step{.phase = Phase::steady_step, .ops = {}};
  for (std::size_t i = 0; i < plan.graph->operators.size(); ++i) {
    const model::Operator& source = plan.graph->operators[i];
    if (renames(source.kind)) continue;
    Op op{.name = source.name,
          .part = Part::forward,
          .block = source.block,
          .action = Compute{.kind = source.kind,
                            .direction = Direction::forward,
                            .source = static_cast<std::int32_t>(i),
                            .attributes = source.attributes},
          .operands = {}};
    const bool updated = in_place(source.kind);
    // Logits and targets were read by the statistics.
    const bool last_only = source.kind == OperatorKind::cross_entropy_part;
    for (std::size_t k = last_only ? 2 : 0; k < source.inputs.size(); ++k) {
      const BufferId buffer = plan.value_buffer(source.inputs[k]);
      op.operands.push_back(updated ? updates(plan, buffer) : reads(plan, buffer));
    }
    for (model::ParamId p : source.params) op.operands.push_back(reads(plan, BufferId{p.value}));
    if (!updated)
      for (model::ValueId v : source.outputs) op.operands.push_back(writes(plan, plan.value_buffer(v)));
    const Bytes bytes =
        compute_workspace(source.kind, Direction::forward, source.attributes, strategy.storage(), strategy.threads);
    if (bytes.count() > 0) {
      const BufferId workspace =
          plan.add_buffer({.name = source.name + ".workspace", .category = Category::workspace, .bytes = bytes});
      op.operands.push_back(writes(plan, workspace));
    }
    step.ops.push_back(std::move(op));
  }
  plan.phases.push_back(std::move(step));
  return plan;
}

}  // namespace shard::plan
