// build_graph: each family builds its own.
#include "sim/model/graph.h"

#include <cassert>

#include "sim/model/gpt2.h"
#include "sim/model/llama.h"
#include "sim/model/mlp.h"

namespace shard::model {

namespace {

Graph family_graph(const Model& model, std::int64_t batch, std::int64_t sequence) {
  switch (model.family) {
    case Family::gpt2: return gpt2_graph(model, batch, sequence);
    case Family::llama: return llama_graph(model, batch, sequence);
    case Family::mlp: return mlp_graph(model, batch, sequence);
  }
  assert(false);
  return {};
}

}  // namespace

Graph build_graph(const Model& model, std::int64_t batch, std::int64_t sequence) {
  assert(batch >= 1 && sequence >= 1);
  assert(model.max_sequence == 0 || sequence <= model.max_sequence);
  Graph graph = family_graph(model, batch, sequence);
  for (Operator& op : graph.operators)
    for (std::size_t i = 0; i < op.params.size(); ++i)
      if (model.is_frozen(op.params[i])) op.attributes.frozen |= 1U << i;
  return graph;
}

}  // namespace shard::model
