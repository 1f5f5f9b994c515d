// The formulas of flops.h, one case per operator kind.
#include "sim/model/flops.h"

#include <algorithm>
#include <cassert>

namespace shard::model {
namespace {

/// FLOPs per element of the result, for operators whose work is proportional to it.
struct PerElement {
  double forward;
  double inputs;
  double parameters;
};

PerElement per_element(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::embedding: return {0, 0, 1};
    case OperatorKind::add_position: return {1, 0, 1};
    case OperatorKind::layer_norm: return {8, 9, 3};
    case OperatorKind::rms_norm: return {4, 8, 3};
    case OperatorKind::rotary: return {3, 3, 0};
    case OperatorKind::gelu: return {9, 17, 0};
    case OperatorKind::swiglu: return {5, 11, 0};
    case OperatorKind::add: return {1, 0, 0};
    case OperatorKind::dropout: return {2, 2, 0};
    case OperatorKind::cross_entropy: return {4, 4, 0};  // per logit
    case OperatorKind::mse: return {3, 2, 0};            // per element of the prediction
    case OperatorKind::embedding_part: return {0, 0, 1};
    case OperatorKind::vocabulary_statistics: return {4, 0, 0};  // per logit
    case OperatorKind::cross_entropy_part: return {0, 4, 0};     // per logit
    case OperatorKind::add_bias: return {1, 0, 1};
    case OperatorKind::join_columns:
    case OperatorKind::take_columns:
    case OperatorKind::tensor_sum:
    case OperatorKind::tensor_input:
    case OperatorKind::tensor_gather:
    case OperatorKind::tensor_part: return {0, 0, 0};
    case OperatorKind::linear:
    case OperatorKind::attention: break;
  }
  assert(false && "not proportional to its result");
  return {0, 0, 0};
}

struct Work {
  double forward;
  double inputs;
  double parameters;
};

Work work(const Graph& graph, const Operator& op) {
  const Attributes& a = op.attributes;
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  if (op.kind == OperatorKind::linear) {
    const double product = 2.0 * d(a.rows) * d(a.columns) * d(a.out_columns);
    const double bias = a.has_bias ? d(a.rows) * d(a.out_columns) : 0.0;
    return {product + bias, product, product + bias};
  }
  if (op.kind == OperatorKind::attention) {
    const double scores = d(a.batch) * d(a.heads) * d(a.sequence) * d(a.sequence);
    const double dropped = a.probability > 0 ? per_element(OperatorKind::dropout).forward * scores : 0.0;
    return {4.0 * scores * d(a.head_dim) + 5.0 * scores + dropped,
            10.0 * scores * d(a.head_dim) + 6.0 * scores + dropped, 0.0};
  }
  const bool of_input = op.kind == OperatorKind::cross_entropy || op.kind == OperatorKind::mse ||
                        op.kind == OperatorKind::vocabulary_statistics || op.kind == OperatorKind::cross_entropy_part;
  const ValueId counted = of_input ? op.inputs.front() : op.outputs.front();
  const double n = d(graph.values[static_cast<std::size_t>(counted.value)].elements());
  const PerElement per = per_element(op.kind);
  return {per.forward * n, per.inputs * n, per.parameters * n};
}

/// Byte totals of an operator's operands.
struct Operands {
  Bytes inputs;        ///< all of them
  Bytes float_inputs;  ///< those that have a gradient
  Bytes parameters;
  Bytes result;
  Bytes statistics;
};

Operands operands(const Graph& graph, const ParameterList& parameters, const Operator& op) {
  Operands sum;
  for (ValueId id : op.inputs) {
    const Value& value = graph.values[static_cast<std::size_t>(id.value)];
    sum.inputs += value.bytes();
    if (value.dtype == Dtype::f32 && id != graph.target) sum.float_inputs += value.bytes();
  }
  for (ParamId id : op.params) {
    const Parameter& parameter = parameters[static_cast<std::size_t>(id.value)];
    sum.parameters += Bytes{parameter.elems.count() * bytes_per_element(Dtype::f32)};
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const Bytes bytes = graph.values[static_cast<std::size_t>(op.outputs[i].value)].bytes();
    (i == 0 ? sum.result : sum.statistics) += bytes;
  }
  return sum;
}

/// Bytes of the table rows that a lookup touches: no more than there are, and no more than one per token.
Bytes rows_touched(const Operands& sizes) {
  return std::min(sizes.parameters, sizes.result);
}

[[nodiscard]] Bytes graph_bytes(const Graph& graph, ValueId id) {
  return graph.values[static_cast<std::size_t>(id.value)].bytes();
}

/// Forward, gradients of inputs, gradients of parameters.
struct Traffic {
  Bytes forward;
  Bytes inputs;
  Bytes parameters;
};

Traffic traffic(const Graph& graph, const Operator& op, const Operands& s) {
  const Bytes none{0};
  const Bytes gradient_of_result = s.result;
  switch (op.kind) {
    case OperatorKind::embedding:
    case OperatorKind::embedding_part:
      return {s.inputs + rows_touched(s) + s.result, none, s.inputs + gradient_of_result + s.parameters};
    case OperatorKind::add_position:
      return {s.inputs + rows_touched(s) + s.result, none, gradient_of_result + s.parameters};
    case OperatorKind::linear:
      return {s.inputs + s.parameters + s.result, gradient_of_result + s.parameters + s.float_inputs,
              gradient_of_result + s.inputs + s.parameters};
    case OperatorKind::layer_norm:
    case OperatorKind::rms_norm:
      return {s.inputs + s.parameters + s.result + s.statistics,
              gradient_of_result + s.inputs + s.parameters + s.statistics + s.float_inputs, s.parameters};
    case OperatorKind::attention:  // reads result and inputs again to recompute the scores
      return {s.inputs + s.result + s.statistics,
              gradient_of_result + s.result + s.inputs + s.statistics + s.float_inputs, none};
    case OperatorKind::rotary:
    case OperatorKind::dropout: return {s.inputs + s.result, gradient_of_result + s.float_inputs, none};
    case OperatorKind::gelu:
    case OperatorKind::swiglu: return {s.inputs + s.result, gradient_of_result + s.inputs + s.float_inputs, none};
    case OperatorKind::add: return {s.inputs + s.result, none, none};
    case OperatorKind::cross_entropy:
    case OperatorKind::mse: return {s.inputs + s.result + s.statistics, s.inputs + s.statistics + s.float_inputs, none};
    case OperatorKind::vocabulary_statistics: return {s.inputs + s.result, none, none};
    case OperatorKind::cross_entropy_part: {
      const auto bytes = [&](std::size_t i) { return graph_bytes(graph, op.inputs[i]); };
      return {bytes(2) + s.result + s.statistics, 2 * bytes(0) + bytes(1) + s.statistics, none};
    }
    case OperatorKind::add_bias: return {s.inputs + s.parameters + s.result, none, gradient_of_result + s.parameters};
    case OperatorKind::join_columns:
    case OperatorKind::take_columns: return {s.result + s.result, gradient_of_result + gradient_of_result, none};
    case OperatorKind::tensor_sum:
    case OperatorKind::tensor_input:
    case OperatorKind::tensor_gather:
    case OperatorKind::tensor_part: return {};  // collectives
  }
  assert(false);
  return {};
}

}  // namespace

OperatorCost operator_cost(const Graph& graph, const ParameterList& parameters, const Operator& op) {
  const Work w = work(graph, op);
  const Traffic t = traffic(graph, op, operands(graph, parameters, op));
  return {{Flops{w.forward}, t.forward}, {Flops{w.inputs}, t.inputs}, {Flops{w.parameters}, t.parameters}};
}

Flops training_flops(const Graph& graph, const ParameterList& parameters) {
  Flops sum;
  for (const Operator& op : graph.operators) {
    const OperatorCost cost = operator_cost(graph, parameters, op);
    sum += cost.forward.flops + cost.backward_parameters.flops;
    if (op.inputs.front() != graph.input) sum += cost.backward_inputs.flops;
  }
  return sum;
}

}  // namespace shard::model
