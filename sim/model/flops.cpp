// The formulas of flops.h.
#include "sim/model/flops.h"

#include "sim/model/signature.h"

namespace shard::model {
namespace {

/// Bytes of an op's operands in fp32, each as often as it is read and written.
struct Moved {
  Bytes gradients_of_parameters;
  Bytes others;
  bool gradient_of_input = false;
};

Moved moved(const Graph& graph, const ParameterList& parameters, const Operator& op, Direction direction) {
  Moved sum;
  for (const Slot& slot : signature(op.kind, direction, op.attributes, {.input_gradient = true})) {
    const std::int64_t bytes =
        elements(graph, parameters, op, slot) * bytes_per_element(dtype(graph, op, slot, Dtype::f32));
    const bool updated = slot.access == Access::update;
    (slot.role == Role::dp ? sum.gradients_of_parameters : sum.others) += Bytes{updated ? 2 * bytes : bytes};
    sum.gradient_of_input = sum.gradient_of_input || slot.is(Role::dx);
  }
  return sum;
}

}  // namespace

OperatorFlops operator_flops(const Graph& graph, const Operator& op) {
  const Attributes& a = op.attributes;
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  const auto per_element = [&](ValueId counted) {
    const double n = d(graph.values[static_cast<std::size_t>(counted.value)].elements());
    const Work& per = row(op.kind).work;
    return OperatorFlops{Flops{per.forward * n}, Flops{per.inputs * n}, Flops{per.parameters * n}};
  };
  switch (row(op.kind).work.of) {
    case Work::Of::result: return per_element(op.outputs.front());
    case Work::Of::input: return per_element(op.inputs.front());
    case Work::Of::product: {
      const double product = 2.0 * d(a.rows) * d(a.columns) * d(a.out_columns);
      const double bias = a.has_bias ? d(a.rows) * d(a.out_columns) : 0.0;
      return {Flops{product + bias}, Flops{product}, Flops{product + bias}};
    }
    case Work::Of::attention: break;
  }
  const double scores = d(a.batch) * d(a.heads) * d(a.sequence) * d(a.sequence);
  const double dropped = a.probability > 0 ? row(OperatorKind::dropout).work.forward * scores : 0.0;
  return {Flops{4.0 * scores * d(a.head_dim) + 5.0 * scores + dropped},
          Flops{10.0 * scores * d(a.head_dim) + 6.0 * scores + dropped}, Flops{0}};
}

OperatorCost operator_cost(const Graph& graph, const ParameterList& parameters, const Operator& op) {
  const OperatorFlops flops = operator_flops(graph, op);
  PassCost inputs{flops.backward_inputs, {}};
  PassCost params{flops.backward_parameters, {}};
  for (Direction d : {Direction::backward, Direction::backward_input, Direction::backward_weight}) {
    const Moved m = moved(graph, parameters, op, d);
    (m.gradient_of_input ? inputs : params).bytes += m.others;
    params.bytes += m.gradients_of_parameters;
  }
  return {{flops.forward, moved(graph, parameters, op, Direction::forward).others}, inputs, params};
}

Flops training_flops(const Graph& graph) {
  Flops sum;
  for (const Operator& op : graph.operators) {
    const OperatorFlops flops = operator_flops(graph, op);
    sum += flops.forward + flops.backward_parameters;
    if (op.inputs.front() != graph.input) sum += flops.backward_inputs;
  }
  return sum;
}

}  // namespace shard::model
