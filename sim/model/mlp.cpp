// Linear layers and a loss.
#include "sim/model/mlp.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "sim/model/graph_builder.h"
#include "sim/model/model_limits.h"
#include "sim/model/parameter_builder.h"

namespace shard::model {

void describe_mlp(ConfigFields& fields, Model& model) {
  model.family = Family::mlp;
  model.sizes = fields.positive_list({"sizes"}, 2);
  model.bias = fields.boolean({"bias"}, true);
  const std::string loss = fields.text({"loss"}, "mse");
  if (loss != "mse" && loss != "cross_entropy") {
    fields.contradiction("loss", "is \"" + loss + "\", which is not supported", "use \"mse\" or \"cross_entropy\"");
  }
  fields.refuse_unknown_keys();
  if (fields.error()) return;
  model.cross_entropy = loss == "cross_entropy";
  model.layers = static_cast<std::int64_t>(model.sizes.size()) - 1;
  check_layers(fields, "sizes", model.layers);
  if (fields.error()) return;
  model.hidden = model.intermediate = *std::max_element(model.sizes.begin(), model.sizes.end());
  model.vocabulary = model.cross_entropy ? model.sizes.back() : 0;
  model.max_sequence = 1;

  ParameterBuilder add(model);
  for (std::size_t i = 0; i + 1 < model.sizes.size(); ++i) {
    const Initialization uniform{Initialization::Kind::uniform, 1.0F / std::sqrt(static_cast<float>(model.sizes[i]))};
    add.set_block(static_cast<std::int32_t>(i));
    add.add(std::to_string(i) + ".weight", {model.sizes[i + 1], model.sizes[i]}, uniform);
    if (model.bias) add.add(std::to_string(i) + ".bias", {model.sizes[i + 1]}, uniform);
  }
  check_total(fields, add);
}

Graph mlp_graph(const Model& model, std::int64_t batch, std::int64_t sequence) {
  assert(sequence == 1);
  GraphBuilder g(model, batch, sequence);
  ValueId x = g.input({batch, model.sizes.front()}, Dtype::f32);
  const ValueId targets =
      model.cross_entropy ? g.target({batch}, Dtype::i32) : g.target({batch, model.sizes.back()}, Dtype::f32);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    g.set_block(static_cast<std::int32_t>(i));
    x = g.linear(std::to_string(i), x, false);
    if (i + 1 < model.layers) x = g.dropout(std::to_string(i) + ".dropout", x);
  }
  g.set_block(-1);
  if (model.cross_entropy)
    g.cross_entropy("loss", x, targets);
  else
    g.mse("loss", x, targets);
  return std::move(g).finish();
}

}  // namespace shard::model
