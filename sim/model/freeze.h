// Frozen parameters: which ones patterns name, and which values of a graph still need a gradient.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "traces/base/result.h"

namespace shard::model {

/// The model with those parameters frozen whose names match a pattern, as the shell matches (`*`, `?`, `[...]`; a dot
/// is a letter as any other). A tied weight has one name: frozen once, it is frozen in all its uses. No patterns, no
/// frozen parameters. Contradiction (78) for a pattern that matches nothing and for patterns that leave nothing to
/// train.
[[nodiscard]] Result<Model> freeze(Model model, std::span<const std::string> patterns);

/// Those that are not frozen, in the model's order.
[[nodiscard]] ParameterList trained_parameters(const Model& model);

/// By value: whether some parameter that is not frozen lies under it, so that backward has to go through it.
[[nodiscard]] std::vector<bool> values_with_gradient(const Graph& graph);

}  // namespace shard::model
