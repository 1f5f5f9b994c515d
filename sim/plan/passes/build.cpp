// Pass build: the model's forward operators on one micro-batch.
#include "sim/plan/passes/operands.h"
#include "sim/plan/passes/passes.h"
#include "sim/plan/workspace.h"

namespace shard::plan {
namespace {

/// By value: results of operators are stored in the strategy's type; statistics and the loss stay fp32.
std::vector<Dtype> stored_as(const model::Graph& graph, const Strategy& strategy) {
  std::vector<Dtype> types;
  for (const model::Value& value : graph.values)
    types.push_back(value.dtype == Dtype::f32 ? strategy.storage() : value.dtype);
  for (const model::Operator& op : graph.operators)
    for (std::size_t i = 1; i < op.outputs.size(); ++i)
      types[static_cast<std::size_t>(op.outputs[i].value)] = Dtype::f32;
  types[static_cast<std::size_t>(graph.loss.value)] = Dtype::f32;
  return types;
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
  const std::vector<Dtype> stored = stored_as(*plan.graph, strategy);
  for (std::size_t v = 0; v < plan.graph->values.size(); ++v) {
    const model::Value& value = plan.graph->values[v];
    const model::ValueId id{static_cast<std::int32_t>(v)};
    const bool data = id == plan.graph->input || id == plan.graph->target || id == plan.graph->loss;
    plan.add_buffer({.name = value.name,
                     .category = data ? Category::input : Category::workspace,
                     .dtype = stored[v],
                     .bytes = bytes_of(stored[v], Elems{value.elements()})});
  }
  PhaseOps step{.phase = Phase::steady_step, .ops = {}};
  for (std::size_t i = 0; i < plan.graph->operators.size(); ++i) {
    const model::Operator& source = plan.graph->operators[i];
    Op op{.name = source.name,
          .part = Part::forward,
          .block = source.block,
          .action = Compute{.kind = source.kind,
                            .direction = Direction::forward,
                            .source = static_cast<std::int32_t>(i),
                            .attributes = source.attributes},
          .operands = {}};
    for (model::ValueId v : source.inputs) op.operands.push_back(reads(plan, plan.value_buffer(v)));
    for (model::ParamId p : source.params) op.operands.push_back(reads(plan, BufferId{p.value}));
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
