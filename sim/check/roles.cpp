// What each operand of a compute op is.
#include "sim/check/roles.h"

#include "sim/target/workspace.h"

namespace shard::plan::verification {
namespace {

using model::OperatorKind;

class Table {
 public:
  Table(const Plan& plan, const model::Operator& op) : plan_(plan), op_(op) {}

  Table& value(model::ValueId v) {
    return push({.role = Role::value, .value = v, .elems = elems(v), .dtype = dtype(v)});
  }
  Table& input(std::size_t i) { return value(op_.inputs[i]); }
  Table& inputs() {
    for (model::ValueId v : op_.inputs) value(v);
    return *this;
  }
  Table& outputs() {
    for (model::ValueId v : op_.outputs) push({.role = Role::output, .value = v, .elems = elems(v), .dtype = dtype(v)});
    return *this;
  }
  Table& becomes_result() {
    return push({.role = Role::becomes_result,
                 .value = op_.outputs[0],
                 .elems = elems(op_.outputs[0]),
                 .dtype = dtype(op_.outputs[0])});
  }
  Table& statistics() {
    for (std::size_t i = 1; i < op_.outputs.size(); ++i) value(op_.outputs[i]);
    return *this;
  }
  Table& result_gradient() {
    return push({.role = Role::result_gradient, .elems = elems(op_.outputs[0]), .dtype = dtype(op_.outputs[0])});
  }
  /// The gradients of all ranks' columns of the result.
  Table& result_gradients() {
    result_gradient();
    slots_.back().elems *= op_.attributes.parts;
    return *this;
  }
  Table& into_input(std::size_t i) {
    return push({.role = Role::input_gradient,
                 .index = index(i),
                 .elems = elems(op_.inputs[i]),
                 .dtype = dtype(op_.inputs[i])});
  }
  /// This rank's columns of input 0.
  Table& into_own_columns() {
    into_input(0);
    slots_.back().elems /= op_.attributes.parts;
    return *this;
  }
  Table& in_place() {
    return push({.role = Role::gradient_in_place, .elems = elems(op_.outputs[0]), .dtype = dtype(op_.outputs[0])});
  }
  Table& becomes_gradient() {
    return push({.role = Role::result_becomes_gradient,
                 .value = op_.inputs[0],
                 .elems = elems(op_.inputs[0]),
                 .dtype = dtype(op_.inputs[0])});
  }
  Table& parameter(std::size_t i) {
    return push({.role = Role::parameter, .index = index(i), .elems = elems_of(i), .dtype = plan_.strategy.storage()});
  }
  Table& parameters() {
    for (std::size_t i = 0; i < op_.params.size(); ++i) parameter(i);
    return *this;
  }
  [[nodiscard]] bool trains(std::size_t i) const { return !plan_.model->is_frozen(op_.params[i]); }
  /// The operator's parameters that are not frozen.
  [[nodiscard]] std::size_t trained() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < op_.params.size(); ++i) n += trains(i) ? 1U : 0U;
    return n;
  }
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  Table& into_parameters() {
    for (std::size_t i = 0; i < op_.params.size(); ++i)
      if (trains(i))
        push({.role = Role::parameter_gradient,
              .index = index(i),
              .elems = elems_of(i),
              .dtype = plan_.strategy.storage()});
    return *this;
  }
  Table& workspace(Direction direction) {
    const Bytes bytes =
        compute_workspace(op_.kind, direction, op_.attributes, plan_.strategy.storage(), plan_.strategy.threads);
    if (bytes.count() == 0) return *this;
    return push({.role = Role::workspace, .elems = bytes.count() / bytes_per_element(Dtype::f32)});
  }
  /// Behind the operands of a loss's backward.
  Table& loss_scale() {
    if (!plan_.strategy.has_scaler()) return *this;
    return push({.role = Role::loss_scale, .elems = 1});
  }
  [[nodiscard]] std::vector<Slot> done() { return std::move(slots_); }

 private:
  Table& push(Slot slot) {
    slots_.push_back(slot);
    return *this;
  }
  static std::int32_t index(std::size_t i) { return static_cast<std::int32_t>(i); }
  [[nodiscard]] std::int64_t elems(model::ValueId v) const {
    return plan_.graph->values[static_cast<std::size_t>(v.value)].elements();
  }
  /// Results of operators and data are stored in the strategy's type, statistics and the loss in fp32.
  [[nodiscard]] Dtype dtype(model::ValueId v) const {
    const model::Value& value = plan_.graph->values[static_cast<std::size_t>(v.value)];
    return value.dtype == Dtype::f32 && !value.statistic ? plan_.strategy.storage() : value.dtype;
  }
  [[nodiscard]] std::int64_t elems_of(std::size_t i) const {
    return plan_.model->parameters[static_cast<std::size_t>(op_.params[i].value)].elems.count();
  }

  const Plan& plan_;
  const model::Operator& op_;
  std::vector<Slot> slots_;
};

std::vector<Slot> backward(Table table, const model::Operator& op, std::size_t operands) {
  switch (op.kind) {
    case OperatorKind::embedding:
    case OperatorKind::embedding_part:
      if (table.trained() == 0) return {};
      return table.input(0).result_gradient().into_parameters().workspace(Direction::backward).done();
    case OperatorKind::add_position:
    case OperatorKind::add_bias:
      if (table.trained() == 0) return {};
      return table.result_gradient().into_parameters().done();
    case OperatorKind::layer_norm:
    case OperatorKind::rms_norm:
      table.input(0).parameter(0).statistics().result_gradient();
      if (operands > table.size() + table.trained()) table.into_input(0);
      return table.into_parameters().done();
    case OperatorKind::rotary:
    case OperatorKind::dropout:
      if (operands == 1) return table.in_place().done();
      return table.result_gradient().into_input(0).done();
    case OperatorKind::gelu:
      if (operands == 2) return table.input(0).in_place().done();
      return table.input(0).result_gradient().into_input(0).done();
    case OperatorKind::swiglu: return table.inputs().result_gradient().into_input(0).into_input(1).done();
    case OperatorKind::attention: {
      table.inputs().statistics().result_gradient();
      for (std::size_t i = 0; i < op.inputs.size(); ++i) table.into_input(i);
      return table.workspace(Direction::backward).done();
    }
    case OperatorKind::cross_entropy:
    case OperatorKind::cross_entropy_part: return table.becomes_gradient().statistics().input(1).loss_scale().done();
    case OperatorKind::mse: return table.inputs().into_input(0).loss_scale().done();
    case OperatorKind::join_columns: return table.result_gradient().into_own_columns().done();
    case OperatorKind::take_columns: return table.result_gradients().into_input(0).done();
    case OperatorKind::linear:
    case OperatorKind::add:
    case OperatorKind::tensor_sum:
    case OperatorKind::tensor_input:
    case OperatorKind::tensor_gather:
    case OperatorKind::tensor_part:
    case OperatorKind::vocabulary_statistics: break;
  }
  return {};
}

}  // namespace

std::vector<Slot> slots_of(const Plan& plan, const model::Operator& op, Direction direction, std::size_t operands) {
  Table table(plan, op);
  const bool linear = op.kind == OperatorKind::linear;
  switch (direction) {
    case Direction::forward:
      if (model::exchanges(op.kind)) return {};  // collectives
      if (op.kind == OperatorKind::add_bias || op.kind == OperatorKind::dropout)
        return table.becomes_result().parameters().done();
      if (op.kind == OperatorKind::cross_entropy_part) return table.input(2).outputs().done();
      return table.inputs().parameters().outputs().workspace(direction).done();
    case Direction::backward: return backward(table, op, operands);
    case Direction::backward_input:
      if (!linear) return {};
      return table.result_gradient().parameter(0).into_input(0).workspace(direction).done();
    case Direction::backward_weight:
      if (!linear) return {};
      if (table.trained() == 0) return {};
      if (table.trains(0)) table.input(0);
      table.result_gradient().into_parameters();
      if (table.trains(0)) table.workspace(direction);
      return table.done();
  }
  return {};
}

}  // namespace shard::plan::verification
