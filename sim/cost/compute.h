// Time of an operator: the roofline.
#pragma once

#include "sim/cost/rates.h"
#include "sim/model/graph.h"
#include "traces/base/units.h"

namespace shard::cost {

/// Arithmetic and memory traffic overlap perfectly; the slower of them decides:   t = L + max(F / P, b / m)        (1)
/// F flops, P reached flops per second, b bytes moved, m reached bytes per second, L launch overhead.
/// Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009. Valid for operators that fill the device; small matrices
/// (below some 1000 x 1000 on a data-centre GPU) take longer. Measured error: MODELS.md#compute.
[[nodiscard]] constexpr Seconds roofline(Flops flops, Bytes moved, FlopsPerSecond reached, BytesPerSecond memory,
                                         Seconds launch) {
  const Seconds arithmetic = flops / reached;
  const Seconds traffic = moved / memory;
  return launch + (arithmetic < traffic ? traffic : arithmetic);  // (1)
}

/// Which peak an operator is held to.
[[nodiscard]] FlopsPerSecond reached_flops(model::OperatorKind kind, const Rates& rates);

/// Bytes of one operand of `dtype` that the operator touches: of a table only the rows that its tokens name.
[[nodiscard]] Bytes touched(model::OperatorKind kind, const model::Attributes& attributes, Dtype dtype, Bytes operand);

}  // namespace shard::cost
