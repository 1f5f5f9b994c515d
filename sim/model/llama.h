// The llama family: Hugging Face LlamaConfig -> Model -> Graph.
#pragma once

#include "sim/model/config_fields.h"
#include "sim/model/graph.h"

namespace shard::model {

/// Reads the fields and appends parameters in the registration order of LlamaForCausalLM. Faults are in fields.error();
/// the model is then incomplete. Defaults: transformers 4.x configuration_llama.py; initialization: modeling_llama.py
/// `_init_weights`.
void describe_llama(ConfigFields& fields, Model& model);

[[nodiscard]] Graph llama_graph(const Model& model, std::int64_t batch, std::int64_t sequence);

}  // namespace shard::model
