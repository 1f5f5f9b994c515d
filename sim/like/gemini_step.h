// One training step as Gemini's hooks see it: operators, in order, and the parameters that each touches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/ir/plan.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"

namespace shard::like {

inline constexpr std::int64_t kHalfBytes = 2;  ///< of a 16-bit element

/// Ops [first, last) of phase steady_step between one pre_op and its post_op.
struct HookedOp {
  std::size_t first = 0;
  std::size_t last = 0;
  plan::Part part = plan::Part::forward;  ///< forward, recompute or backward
  std::vector<std::size_t> parameters{};  ///< in the operator's order; never empty
};

/// Buffers 0..P-1 of the plan are the parameters, in 16 bits; they hold nothing yet, a pass gives them their place.
/// `hooked` is in plan order; ops between are free of parameters.
struct GeminiStep {
  plan::Plan plan;
  std::vector<HookedOp> hooked;
};

/// One op per owning module in order of its first parameter, backward reversed; no activations.
[[nodiscard]] GeminiStep step_of_modules(const ParameterList& parameters);

/// The model's operators on one micro-batch, their derivatives and eager PyTorch's activations (passes.h), all in 16
/// bits but indices and the statistics of norms. A tied weight is touched by both of its operators.
[[nodiscard]] GeminiStep step_of_operators(std::shared_ptr<const model::Model> model, const plan::Strategy& strategy);

}  // namespace shard::like
