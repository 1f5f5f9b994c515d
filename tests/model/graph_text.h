// A graph as words, for tests: "KIND NAME(inputs; parameters) -> shape".
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "sim/model/graph.h"

namespace shard::model {

inline std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::ostringstream text;
  for (std::size_t i = 0; i < shape.size(); ++i) text << (i == 0 ? "[" : ",") << shape[i];
  text << "]";
  return text.str();
}

inline std::vector<std::string> graph_text(const Graph& graph, const Model& model) {
  std::vector<std::string> lines;
  for (const Operator& op : graph.operators) {
    std::ostringstream line;
    line << to_string(op.kind) << " " << op.name << "(";
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      line << (i > 0 ? ", " : "") << graph.values[static_cast<std::size_t>(op.inputs[i].value)].name;
    }
    for (std::size_t i = 0; i < op.params.size(); ++i) {
      line << (i > 0 ? ", " : "; ") << model.parameters[static_cast<std::size_t>(op.params[i].value)].name;
    }
    line << ") ->";
    for (ValueId id : op.outputs) line << " " << shape_text(graph.values[static_cast<std::size_t>(id.value)].shape);
    if (op.block >= 0) line << " @" << op.block;
    lines.push_back(line.str());
  }
  return lines;
}

}  // namespace shard::model
