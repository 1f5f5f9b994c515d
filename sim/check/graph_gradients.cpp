// Which contributions make up each gradient.
#include "sim/check/graph_gradients.h"

#include <algorithm>

namespace shard::plan::verification {
namespace {

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014), the finalizer of SplitMix64.
[[nodiscard]] std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t GraphGradients::contribution(std::int32_t source, std::int32_t index) {
  return mixed((static_cast<std::uint64_t>(source) << 8) + static_cast<std::uint64_t>(index) + 1);
}

std::uint64_t GraphGradients::appended(std::uint64_t history, std::int32_t source, std::int32_t index) {
  return mixed(history + contribution(source, index));
}

GraphGradients::GraphGradients(const Plan& plan)
    : values_(plan.graph->values.size(), 0),
      parameters_(plan.model->parameters.size(), 0),
      trains_(plan.graph->values.size(), false) {
  const auto trains = [&](model::ValueId v) { return this->trains(v); };
  const auto trained = [&](model::ParamId p) { return !plan.model->is_frozen(p); };
  for (const model::Operator& op : plan.graph->operators)
    if (std::ranges::any_of(op.inputs, trains) || std::ranges::any_of(op.params, trained))
      for (model::ValueId v : op.outputs) trains_[static_cast<std::size_t>(v.value)] = true;
  for (std::size_t i = plan.graph->operators.size(); i-- > 0;) {
    const model::Operator& op = plan.graph->operators[i];
    const auto source = static_cast<std::int32_t>(i);
    using Kind = model::OperatorKind;
    if (op.kind == Kind::vocabulary_statistics) continue;  // the loss differentiates what it is made of
    if (!trains(op.outputs[0])) continue;
    const bool passes_on = model::row(op.kind).gradient == model::Gradient::passed_on || op.kind == Kind::tensor_gather;
    // The last uses come first, so what an operator passes on is already whole.
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
      values_[static_cast<std::size_t>(op.inputs[k].value)] +=
          passes_on ? values_[static_cast<std::size_t>(op.outputs[0].value)]
                    : contribution(source, static_cast<std::int32_t>(k));
    for (std::size_t k = 0; k < op.params.size(); ++k) {
      if (!trained(op.params[k])) continue;
      std::uint64_t& history = parameters_[static_cast<std::size_t>(op.params[k].value)];
      history = appended(history, source, static_cast<std::int32_t>(k));
    }
  }
}

}  // namespace shard::plan::verification
