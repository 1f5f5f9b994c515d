// Patterns against parameter names, and trainable parameters up the graph.
#include "sim/model/freeze.h"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/model/closest_name.h"
#include "traces/base/mentions.h"

namespace shard::model {
namespace {

Error refused(const std::string& patterns, std::string what, std::string help) {
  return contradiction_of({option_piece("freeze", patterns), std::move(what)}, "strategy", std::move(help));
}

}  // namespace

Result<Model> freeze(Model model, std::span<const std::string> patterns) {
  if (patterns.empty()) return model;
  model.frozen.assign(model.parameters.size(), false);
  std::string all;
  for (const std::string& pattern : patterns) {
    all += (all.empty() ? "" : " ") + pattern;
    bool found = false;
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      if (fnmatch(pattern.c_str(), model.parameters[p].name.c_str(), 0) != 0) continue;
      model.frozen[p] = true;
      found = true;
    }
    if (found) continue;
    std::vector<std::string_view> names;
    for (const Parameter& p : model.parameters) names.emplace_back(p.name);
    const std::string close = did_you_mean(pattern, names);
    return refused(
        pattern, " matches no parameter of " + model.name,
        close.empty() ? "a parameter's name, such as " + model.parameters.front().name + ", or a pattern" : close);
  }
  if (std::ranges::find(model.frozen, false) == model.frozen.end())
    return refused(all, " leaves no parameter of " + model.name + " to train", "fewer patterns, or narrower ones");
  return model;
}

ParameterList trained_parameters(const Model& model) {
  ParameterList trained;
  for (std::size_t p = 0; p < model.parameters.size(); ++p)
    if (!model.is_frozen(ParamId{static_cast<std::int32_t>(p)})) trained.push_back(model.parameters[p]);
  return trained;
}

std::vector<bool> values_with_gradient(const Graph& graph) {
  std::vector<bool> needs(graph.values.size(), false);
  for (const Operator& op : graph.operators) {
    bool any = false;
    for (ValueId v : op.inputs) any = any || needs[static_cast<std::size_t>(v.value)];
    for (std::size_t i = 0; i < op.params.size(); ++i) any = any || !op.attributes.freezes(i);
    for (ValueId v : op.outputs) needs[static_cast<std::size_t>(v.value)] = any;
  }
  return needs;
}

}  // namespace shard::model
