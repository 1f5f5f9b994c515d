// Time of an optimizer step.
#pragma once

#include "sim/cost/compute.h"
#include "sim/cost/rates.h"
#include "traces/base/units.h"

namespace shard::cost {

/// One pass over parameters, gradients and state, bound by memory:   t = L + max(F / P, b / m)                     (1)
/// b: sgd 12 bytes an element (read p, g; write p), with momentum 20; adam and adamw 28 (read p, g, m, v; write p, m,
/// v). Valid for a fused kernel; one kernel per operation moves several times as much.
[[nodiscard]] constexpr Seconds optimizer_time(Flops flops, Bytes moved, const Rates& rates) {
  return roofline(flops, moved, rates.elementwise, rates.memory, rates.launch);  // (1)
}

}  // namespace shard::cost
