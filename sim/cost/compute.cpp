// Operator kinds onto peaks.
#include "sim/cost/compute.h"

#include <algorithm>

namespace shard::cost {

using model::OperatorKind;

FlopsPerSecond reached_flops(OperatorKind kind, const Rates& rates) {
  switch (kind) {
    case OperatorKind::linear: return rates.matrix;
    case OperatorKind::attention: return rates.attention;
    case OperatorKind::embedding:
    case OperatorKind::add_position:
    case OperatorKind::layer_norm:
    case OperatorKind::rms_norm:
    case OperatorKind::rotary:
    case OperatorKind::gelu:
    case OperatorKind::swiglu:
    case OperatorKind::add:
    case OperatorKind::dropout:
    case OperatorKind::cross_entropy:
    case OperatorKind::mse:
    case OperatorKind::tensor_sum:
    case OperatorKind::tensor_input:
    case OperatorKind::tensor_gather:
    case OperatorKind::tensor_part:
    case OperatorKind::join_columns:
    case OperatorKind::take_columns:
    case OperatorKind::add_bias:
    case OperatorKind::embedding_part:
    case OperatorKind::vocabulary_statistics:
    case OperatorKind::cross_entropy_part: return rates.elementwise;
  }
  return rates.elementwise;
}

Bytes touched(OperatorKind kind, const model::Attributes& attributes, Dtype dtype, Bytes operand) {
  if (kind != OperatorKind::embedding && kind != OperatorKind::embedding_part) return operand;
  return std::min(operand, Bytes{attributes.rows * attributes.out_columns * bytes_per_element(dtype)});
}

}  // namespace shard::cost
