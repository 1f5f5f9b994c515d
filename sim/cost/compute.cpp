// Operator kinds onto peaks.
#include "sim/cost/compute.h"

#include <algorithm>

namespace shard::cost {

using model::OperatorKind;

FlopsPerSecond reached_flops(OperatorKind kind, const Rates& rates) {
  switch (model::row(kind).work.of) {
    case model::Work::Of::product: return rates.matrix;
    case model::Work::Of::attention: return rates.attention;
    case model::Work::Of::result:
    case model::Work::Of::input: break;
  }
  return rates.elementwise;
}

Bytes touched(OperatorKind kind, const model::Attributes& attributes, Dtype dtype, Bytes operand) {
  if (kind != OperatorKind::embedding && kind != OperatorKind::embedding_part) return operand;
  return std::min(operand, Bytes{attributes.rows * attributes.out_columns * bytes_per_element(dtype)});
}

}  // namespace shard::cost
