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
  graph_.values.push_back(Value{.name = std::move(name), .shape = std::move(shape), .dtype = dtype});
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
    graph_.values.back().statistic = true;
  }
  graph_.operators.push_back(std::move(op));
  return result;
}

ValueId GraphBuilder::embedding(std::string_view module, ValueId tokens) {
  const ParamId table = parameter(std::string(module) + ".weight");
  const bool rows_cut = cut_axis(table) == 0;
  Operator op = start(rows_cut ? OperatorKind::embedding_part : OperatorKind::embedding, module, {tokens});
  op.params = {table};
  const std::int64_t columns = model_.parameters[static_cast<std::size_t>(table.value)].shape[1];
  op.attributes.out_columns = columns;
  if (rows_cut) op.attributes.vocabulary = model_.vocabulary;
  ValueId y = append(std::move(op), {batch_, sequence_, columns});
  if (rows_cut) y = same_shape(OperatorKind::tensor_sum, std::string(module) + ".sum", y);
  return mark_parted(y, cut_axis(table) == 1);
}

ValueId GraphBuilder::add_position(std::string_view module, ValueId x, std::int64_t first_row) {
  const ParamId table = parameter(std::string(module) + ".weight");
  const bool columns_cut = cut_axis(table) == 1;
  if (!columns_cut) x = whole(x);
  Operator op = start(OperatorKind::add_position, module, {x});
  op.params = {table};
  op.attributes.first_row = first_row;
  return mark_parted(append(std::move(op), value(x).shape), columns_cut);
}

ValueId GraphBuilder::norm(OperatorKind kind, std::string_view module, ValueId x, float weight_offset) {
  x = whole(x);
  Operator op = start(kind, module, {x});
  op.attributes.epsilon = model_.epsilon;
  op.attributes.weight_offset = weight_offset;
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
  return norm(OperatorKind::layer_norm, module, x, 0);
}

ValueId GraphBuilder::rms_norm(std::string_view module, ValueId x, float weight_offset) {
  return norm(OperatorKind::rms_norm, module, x, weight_offset);
}

ValueId GraphBuilder::linear(std::string_view module, ValueId x, bool weight_in_out) {
  return product(module, parameter(std::string(module) + ".weight"), x, weight_in_out);
}

ValueId GraphBuilder::linear_with(std::string_view module, std::string_view weight, ValueId x) {
  return product(module, parameter(std::string(weight)), x, false);
}

ValueId GraphBuilder::part(std::string_view module, std::string_view weight, ValueId x, std::int64_t out_columns) {
  Operator op = start(OperatorKind::linear, module, {x});
  op.params = {parameter(std::string(weight))};
  op.attributes.out_columns = out_columns;
  constexpr std::string_view kWeight = ".weight";
  if (weight.ends_with(kWeight)) {
    const std::string bias = std::string(weight.substr(0, weight.size() - kWeight.size())) + ".bias";
    op.attributes.has_bias = parameter_index_.contains(bias);
    if (op.attributes.has_bias) op.params.push_back(parameter(bias));
  }
  std::vector<std::int64_t> out = value(x).shape;
  out.back() = out_columns;
  return append(std::move(op), std::move(out));
}

ValueId GraphBuilder::add_bias(std::string_view module, std::string_view bias, ValueId x) {
  Operator op = start(OperatorKind::add_bias, module, {x});
  op.params = {parameter(std::string(bias))};
  return append(std::move(op), value(x).shape);
}

ValueId GraphBuilder::head_norm(std::string_view module, ValueId x) {
  Operator op = start(OperatorKind::rms_norm, module, {x});
  op.attributes.epsilon = model_.epsilon;
  op.params = {parameter(op.name + ".weight")};
  const std::int64_t width = model_.parameters[static_cast<std::size_t>(op.params[0].value)].elems.count();
  op.attributes.rows *= op.attributes.columns / width;
  op.attributes.columns = width;
  const std::int64_t rows = op.attributes.rows;
  return append(std::move(op), value(x).shape, {{".rstd", {rows}}});
}

ValueId GraphBuilder::product(std::string_view module, ParamId weight, ValueId x, bool weight_in_out) {
  const std::int32_t cut = cut_axis(weight);
  const bool by_columns = cut == (weight_in_out ? 1 : 0);
  const bool by_rows = cut >= 0 && !by_columns;
  if (by_rows)
    x = parted(x) ? x : own_columns(x);
  else
    x = by_columns ? shared_input(whole(x)) : whole(x);
  Operator op = start(OperatorKind::linear, module, {x});
  op.params = {weight};
  const auto& shape = model_.parameters[static_cast<std::size_t>(weight.value)].shape;
  op.attributes.weight_in_out = weight_in_out;
  op.attributes.out_columns = weight_in_out ? shape[1] : shape[0];
  // A sum over ranks would add a bias once for each of them.
  const std::string bias = op.name + ".bias";
  const bool has_bias = parameter_index_.contains(bias);
  if (has_bias && !by_rows) {
    op.attributes.has_bias = true;
    op.params.push_back(parameter(bias));
  }
  std::vector<std::int64_t> out = value(x).shape;
  out.back() = op.attributes.out_columns;
  const ValueId y = mark_parted(append(std::move(op), std::move(out)), by_columns);
  if (!by_rows) return y;
  const ValueId sum = same_shape(OperatorKind::tensor_sum, std::string(module) + ".sum", y);
  if (!has_bias) return sum;
  Operator add = start(OperatorKind::add_bias, std::string(module) + ".add_bias", {sum});
  add.params = {parameter(bias)};
  return append(std::move(add), value(sum).shape);
}

ValueId GraphBuilder::rotary(std::string_view module, ValueId x, std::int64_t heads, std::int64_t passed) {
  if (!megatron()) x = whole(x);
  Operator op = start(OperatorKind::rotary, module, {x});
  op.attributes.heads = heads;
  op.attributes.head_dim = model_.head_dim;
  op.attributes.rotary_base = model_.rotary_base;
  const RotaryScaling& scaling = model_.rotary;
  const bool is_long = !scaling.long_frequencies.empty() && sequence_ > scaling.long_above;
  op.attributes.turn = {.columns = scaling.columns,
                        .passed_heads = passed,
                        .factor = scaling.factor,
                        .frequencies = is_long ? scaling.long_frequencies : scaling.frequencies};
  return mark_parted(append(std::move(op), value(x).shape), parted(x));
}

ValueId GraphBuilder::attention(std::string_view module, std::vector<ValueId> inputs) {
  if (!megatron())
    for (ValueId& x : inputs) x = whole(x);
  const bool part = parted(inputs.front());
  Operator op = start(OperatorKind::attention, module, std::move(inputs));
  op.attributes.heads = model_.heads;
  op.attributes.kv_heads = model_.kv_heads;
  op.attributes.head_dim = model_.head_dim;
  if (model_.dropout > 0) {
    op.attributes.probability = model_.dropout;
    op.attributes.mask = masks_++;
    op.attributes.parts = part ? degree() : 0;
  }
  return mark_parted(append(std::move(op), {batch_, sequence_, model_.heads * model_.head_dim},
                            {{".lse", {batch_, model_.heads, sequence_}}}),
                     part);
}

ValueId GraphBuilder::split_groups(std::string_view module, ValueId x) {
  x = whole(x);
  Operator op = start(OperatorKind::split_groups, module, {x});
  op.attributes.heads = model_.heads;
  op.attributes.kv_heads = model_.kv_heads;
  op.attributes.head_dim = model_.head_dim;
  return append(std::move(op), value(x).shape);
}

ValueId GraphBuilder::activation(OperatorKind kind, std::string_view module, ValueId x) {
  return mark_parted(same_shape(kind, std::string(module), x), parted(x));
}

ValueId GraphBuilder::gated(OperatorKind kind, std::string_view module, ValueId gate, ValueId up) {
  return mark_parted(append(start(kind, module, {gate, up}), value(gate).shape), parted(gate));
}

ValueId GraphBuilder::swiglu_packed(std::string_view module, ValueId x) {
  x = whole(x);
  Operator op = start(OperatorKind::swiglu, module, {x});
  op.attributes.out_columns = op.attributes.columns / 2;
  std::vector<std::int64_t> shape = value(x).shape;
  shape.back() = op.attributes.out_columns;
  return append(std::move(op), std::move(shape));
}

ValueId GraphBuilder::scale(std::string_view module, ValueId x, float factor) {
  Operator op = start(OperatorKind::scale, module, {x});
  op.attributes.factor = factor;
  return mark_parted(append(std::move(op), value(x).shape), parted(x));
}

ValueId GraphBuilder::add(std::string_view module, ValueId a, ValueId b) {
  a = whole(a);
  b = whole(b);
  return append(start(OperatorKind::add, module, {a, b}), value(a).shape);
}

ValueId GraphBuilder::dropout(std::string_view module, ValueId x) {
  if (model_.dropout <= 0) return x;
  x = whole(x);
  Operator op = start(OperatorKind::dropout, module, {x});
  op.attributes.probability = model_.dropout;
  op.attributes.mask = masks_++;
  return append(std::move(op), value(x).shape);
}

void GraphBuilder::cross_entropy(std::string_view module, ValueId logits, ValueId targets) {
  if (parted(logits)) return cross_entropy_of_parts(module, logits, targets);
  Operator op = start(OperatorKind::cross_entropy, module, {logits, targets});
  const std::int64_t rows = op.attributes.rows;
  graph_.loss = append(std::move(op), {1}, {{".lse", {rows}}});
  graph_.values[static_cast<std::size_t>(graph_.loss.value)].statistic = true;
}

void GraphBuilder::mse(std::string_view module, ValueId prediction, ValueId targets) {
  graph_.loss = append(start(OperatorKind::mse, module, {whole(prediction), targets}), {1});
  graph_.values[static_cast<std::size_t>(graph_.loss.value)].statistic = true;
}

// --- tensor parallelism ----------------------------------------------------------------------------------------------

std::int32_t GraphBuilder::cut_axis(ParamId id) const {
  return degree() == 1 ? -1 : model_.split.parameters[static_cast<std::size_t>(id.value)].axis;
}

ValueId GraphBuilder::mark_parted(ValueId id, bool is) {
  if (is) parted_.insert(id.value);
  return id;
}

ValueId GraphBuilder::same_shape(OperatorKind kind, std::string name, ValueId x) {
  return append(start(kind, name, {x}), value(x).shape);
}

ValueId GraphBuilder::whole(ValueId x) {
  if (!parted(x)) return x;
  if (const auto known = whole_.find(x.value); known != whole_.end()) return known->second;
  const std::string name = value(x).name;
  std::vector<std::int64_t> shape = value(x).shape;
  std::vector<std::int64_t> of_all = shape;
  of_all.insert(of_all.begin(), degree());
  const ValueId all = append(start(OperatorKind::tensor_gather, name + ".all", {x}), std::move(of_all));
  Operator join = start(OperatorKind::join_columns, name + ".joined", {all});
  join.attributes.columns = shape.back();
  join.attributes.parts = degree();
  shape.back() *= degree();
  return whole_[x.value] = append(std::move(join), std::move(shape));
}

ValueId GraphBuilder::shared_input(ValueId x) {
  // Data has no gradient.
  if (x == graph_.input) return x;
  if (const auto known = shared_input_.find(x.value); known != shared_input_.end()) return known->second;
  return shared_input_[x.value] = same_shape(OperatorKind::tensor_input, value(x).name + ".shared", x);
}

ValueId GraphBuilder::own_columns(ValueId x) {
  const std::string name = value(x).name;
  Operator take = start(OperatorKind::take_columns, name + ".taken", {x});
  take.attributes.parts = degree();
  std::vector<std::int64_t> shape = value(x).shape;
  shape.back() /= degree();
  return mark_parted(same_shape(OperatorKind::tensor_part, name + ".part", append(std::move(take), std::move(shape))));
}

void GraphBuilder::cross_entropy_of_parts(std::string_view module, ValueId logits, ValueId targets) {
  const std::string name(module);
  Operator statistics = start(OperatorKind::vocabulary_statistics, name + ".statistics", {logits, targets});
  const std::int64_t rows = statistics.attributes.rows;
  statistics.attributes.vocabulary = model_.vocabulary;
  statistics.attributes.parts = degree();
  const ValueId own = append(std::move(statistics), {3, rows});
  graph_.values[static_cast<std::size_t>(own.value)].statistic = true;
  const ValueId all = append(start(OperatorKind::tensor_gather, name + ".statistics.all", {own}), {degree(), 3, rows});
  graph_.values[static_cast<std::size_t>(all.value)].statistic = true;
  Operator op = start(OperatorKind::cross_entropy_part, module, {logits, targets, all});
  op.attributes.vocabulary = model_.vocabulary;
  op.attributes.parts = degree();
  graph_.loss = append(std::move(op), {1}, {{".lse", {rows}}});
  graph_.values[static_cast<std::size_t>(graph_.loss.value)].statistic = true;
}

}  // namespace shard::model
