// build_graph: each family builds its own.
#include "sim/model/graph.h"

#include <cassert>

#include "sim/model/family.h"
#include "sim/model/mlp.h"

namespace shard::model {

namespace {

Graph forward_graph(const Model& model, std::int64_t batch, std::int64_t sequence) {
  return model.family == Family::mlp ? mlp_graph(model, batch, sequence) : family_graph(model, batch, sequence);
}

}  // namespace

Graph build_graph(const Model& model, std::int64_t batch, std::int64_t sequence) {
  assert(batch >= 1 && sequence >= 1);
  assert(model.max_sequence == 0 || sequence <= model.max_sequence);
  Graph graph = forward_graph(model, batch, sequence);
  for (Operator& op : graph.operators)
    for (std::size_t i = 0; i < op.params.size(); ++i)
      if (model.is_frozen(op.params[i])) op.attributes.frozen |= 1U << i;
  return graph;
}

}  // namespace shard::model
