// Floating-point operations and bytes moved by each forward operator and by its backward.
#pragma once

#include "sim/model/graph.h"
#include "traces/base/units.h"

namespace shard::model {

/// Backward is in two parts, because the first operators of a model need no gradient of their input. An operator whose
/// backward is one kernel has the sum of both; what only one part needs is counted in that part.
struct OperatorFlops {
  Flops forward;
  Flops backward_inputs;      ///< gradients of the inputs
  Flops backward_parameters;  ///< gradients of the parameters; zero for operators without
};

/// One pass over one operator.
struct PassCost {
  Flops flops;
  Bytes bytes;  ///< every operand read once and every result written once: a lower bound, reached when nothing spills
};

/// In the parts of OperatorFlops.
struct OperatorCost {
  PassCost forward;
  PassCost backward_inputs;
  PassCost backward_parameters;
};

/// T rows, I and O columns, B sequences of S tokens, H heads of D, n elements of the result. A multiply-add counts two;
/// exp, tanh, log, division and square root count one each.
///   linear         forward 2TIO (+ TO with bias); inputs 2TIO; parameters 2TIO (+ TO)
///   attention      forward two products, 4BHSSD, + 5BHSS for the softmax (scale, subtract, exp, sum, divide);
///                  inputs five products, 10BHSSD (scores recomputed, dV, dP, dQ, dK), + 6BHSS.
///                  The full S x S square is counted although the mask is causal, as the published model FLOPs do.
///   embedding      forward 0; parameters n additions
///   add_position   forward n; inputs 0 (the gradient passes through); parameters n
///   layer_norm     forward 8n; inputs 9n; parameters 3n        rms_norm  forward 4n; inputs 8n; parameters 3n
///   rotary         3n both ways (sines and cosines not counted)
///   gelu           forward 9n; inputs 17n                       swiglu    forward 5n; inputs 11n
///   add            forward n; inputs 0
///   dropout        2n both ways (compare, scale; draws not counted); of attention's probabilities + 2BHSS both ways
///   cross_entropy  forward 4TV; inputs 4TV                      mse       forward 3TO; inputs 2TO
///   tensor parallel: embedding_part as embedding; vocabulary_statistics and cross_entropy_part share cross_entropy's
///   on their part of V; add_bias forward n, parameters n; joining, taking and exchanging none
/// Products: PaLM (arXiv 2204.02311) appendix B, whose 12LHQT per token is the attention's 4 + 8 here; the fifth
/// product of the attention backward is FlashAttention-2's (arXiv 2307.08691, section 3.1.2), needed as scores are not
/// saved. Elementwise counts are read off the formulas of the operators; such operators are bound by bytes, not by
/// these. The counts for each element stand in the rows of operators.h.
[[nodiscard]] OperatorFlops operator_flops(const Graph& graph, const Operator& op);

/// With the bytes of the operands that each pass has.
[[nodiscard]] OperatorCost operator_cost(const Graph& graph, const ParameterList& parameters, const Operator& op);

/// Sum of all three passes over the whole graph. The first operator's gradient of its input is left out.
[[nodiscard]] Flops training_flops(const Graph& graph);

}  // namespace shard::model
