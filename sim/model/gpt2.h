// The gpt2 family: Hugging Face GPT2Config -> Model -> Graph.
#pragma once

#include "sim/model/config_fields.h"
#include "sim/model/graph.h"

namespace shard::model {

/// Reads the fields and appends parameters in the registration order of GPT2LMHeadModel. Faults are in fields.error();
/// the model is then incomplete. Defaults: transformers 4.x configuration_gpt2.py; initialization: modeling_gpt2.py
/// `_init_weights` (residual projections divided by sqrt(2 layers), as in the GPT-2 paper, section 2.3).
void describe_gpt2(ConfigFields& fields, Model& model);

[[nodiscard]] Graph gpt2_graph(const Model& model, std::int64_t batch, std::int64_t sequence);

}  // namespace shard::model
