// Shapes and attributes of each operator kind, as graph.h states them.
#include "sim/model/graph_builder.h"

#include <cassert>
#include <utility>

namespace shard::model {

GraphBuilder::GraphBuilder(const Model& model, std::int64_t batch, std::int64_t sequence)
    : model_(model), batch_(batch), sequence_(sequence) {
  parameter_index_.reserve(model.parameters.size());
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    parameter_index_.emplace(model.parameters[i].name, static_cast<std::int32_t>(i));
  }
}

ParamId GraphBuilder::parameter(const std::string& name) const {
  const auto found = parameter_index_.find(name);
  assert(found != parameter_index_.end());
  return ParamId{found->second};
}

ValueId GraphBuilder::add_value(std::string name, std::vector<std::int64_t> shape, Dtype dtype) {
  graph_.values.push_back(Value{std::move(name), std::move(shape), dtype});
  return ValueId{static_cast<std::int32_t>(graph_.values.size() - 1)};
}

ValueId GraphBuilder::input(std::vector<std::int64_t> shape, Dtype dtype) {
  return graph_.input = add_value("input", std::move(shape), dtype);
}

ValueId GraphBuilder::target(std::vector<std::int64_t> shape, Dtype dtype) {
  return graph_.target = add_value("target", std::move(shape), dtype);
}

Operator GraphBuilder::start(OperatorKind kind, std::string_view module, std::vector<ValueId> inputs) const {
  Operator op;
  op.kind = kind;
  op.name = module;
  op.block = block_;
  op.attributes.rows = batch_ * sequence_;
  op.attributes.columns = value(inputs.front()).elements() / op.attributes.rows;
  op.attributes.batch = batch_;
  op.attributes.sequence = sequence_;
  op.inputs = std::move(inputs);
  return op;
}

ValueId GraphBuilder::append(Operator op, std::vector<std::int64_t> shape, std::vector<Statistic> statistics) {
  const ValueId result = add_value(op.name, std::move(shape));
  op.outputs = {result};
  for (Statistic& statistic : statistics) {
    op.outputs.push_back(add_value(op.name + statistic.suffix, std::move(statistic.shape)));
  }
  graph_.operators.push_back(std::move(op));
  return result;
}

ValueId GraphBuilder::embedding(std::string_view module, ValueId tokens) {
  Operator op = start(OperatorKind::embedding, module, {tokens});
  op.params = {parameter(op.name + ".weight")};
  op.attributes.out_columns = model_.hidden;
  return append(std::move(op), {batch_, sequence_, model_.hidden});
}

ValueId GraphBuilder::add_position(std::string_view module, ValueId x) {
  Operator op = start(OperatorKind::add_position, module, {x});
  op.params = {parameter(op.name + ".weight")};
  return append(std::move(op), value(x).shape);
}

ValueId GraphBuilder::norm(OperatorKind kind, std::string_view module, ValueId x) {
  Operator op = start(kind, module, {x});
  op.attributes.epsilon = model_.epsilon;
  op.params = {parameter(op.name + ".weight")};
  const std::int64_t rows = op.attributes.rows;
  std::vector<Statistic> statistics;
  if (kind == OperatorKind::layer_norm) {
    op.params.push_back(parameter(op.name + ".bias"));
    statistics.push_back({".mean", {rows}});
  }
  statistics.push_back({".rstd", {rows}});
  return append(std::move(op), value(x).shape, std::move(statistics));
}

ValueId GraphBuilder::layer_norm(std::string_view module, ValueId x) {
  return norm(OperatorKind::layer_norm, module, x);
}

ValueId GraphBuilder::rms_norm(std::string_view module, ValueId x) {
  return norm(OperatorKind::rms_norm, module, x);
}

ValueId GraphBuilder::linear(std::string_view module, ValueId x, bool weight_in_out) {
  Operator op = start(OperatorKind::linear, module, {x});
  op.params = {parameter(op.name + ".weight")};
  if (parameter_index_.contains(op.name + ".bias")) {
    op.attributes.has_bias = true;
    op.params.push_back(parameter(op.name + ".bias"));
  }
  const auto& weight = model_.parameters[static_cast<std::size_t>(op.params.front().value)].shape;
  op.attributes.weight_in_out = weight_in_out;
  op.attributes.out_columns = weight_in_out ? weight[1] : weight[0];
  std::vector<std::int64_t> shape = value(x).shape;
  shape.back() = op.attributes.out_columns;
  return append(std::move(op), std::move(shape));
}

ValueId GraphBuilder::linear_with(std::string_view module, std::string_view weight, ValueId x) {
  Operator op = start(OperatorKind::linear, module, {x});
  op.params = {parameter(std::string(weight))};
  op.attributes.out_columns = model_.parameters[static_cast<std::size_t>(op.params.front().value)].shape[0];
  std::vector<std::int64_t> shape = value(x).shape;
  shape.back() = op.attributes.out_columns;
  return append(std::move(op), std::move(shape));
}

ValueId GraphBuilder::rotary(std::string_view module, ValueId x, std::int64_t heads) {
  Operator op = start(OperatorKind::rotary, module, {x});
  op.attributes.heads = heads;
  op.attributes.head_dim = model_.head_dim;
  op.attributes.rotary_base = model_.rotary_base;
  return append(std::move(op), value(x).shape);
}

ValueId GraphBuilder::attention(std::string_view module, std::vector<ValueId> inputs) {
  Operator op = start(OperatorKind::attention, module, std::move(inputs));
  op.attributes.heads = model_.heads;
  op.attributes.kv_heads = model_.kv_heads;
  op.attributes.head_dim = model_.head_dim;
  return append(std::move(op), {batch_, sequence_, model_.heads * model_.head_dim},
                {{".lse", {batch_, model_.heads, sequence_}}});
}

ValueId GraphBuilder::gelu(std::string_view module, ValueId x) {
  return append(start(OperatorKind::gelu, module, {x}), value(x).shape);
}

ValueId GraphBuilder::swiglu(std::string_view module, ValueId gate, ValueId up) {
  return append(start(OperatorKind::swiglu, module, {gate, up}), value(gate).shape);
}

ValueId GraphBuilder::add(std::string_view module, ValueId a, ValueId b) {
  return append(start(OperatorKind::add, module, {a, b}), value(a).shape);
}

void GraphBuilder::cross_entropy(std::string_view module, ValueId logits, ValueId targets) {
  Operator op = start(OperatorKind::cross_entropy, module, {logits, targets});
  const std::int64_t rows = op.attributes.rows;
  graph_.loss = append(std::move(op), {1}, {{".lse", {rows}}});
}

void GraphBuilder::mse(std::string_view module, ValueId prediction, ValueId targets) {
  graph_.loss = append(start(OperatorKind::mse, module, {prediction, targets}), {1});
}

}  // namespace shard::model
