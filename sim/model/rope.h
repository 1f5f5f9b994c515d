// Rotary positions in a config.json: theta and scaling under all their names.
#pragma once

#include "sim/model/config_fields.h"
#include "sim/model/graph.h"

namespace shard::model {

/// rope_theta (gpt_neox: rotary_emb_base) stands at the top, or in transformers 5 inside rope_parameters, there for
/// each kind of layer in some. Scaling (rope_scaling, or rope_parameters itself) changes numbers, and neither memory
/// nor time, so a scaled model is predicted as it is and Model::not_trained says what is missing.
void read_rotary(ConfigFields& fields, double fallback, Model& model);

}  // namespace shard::model
