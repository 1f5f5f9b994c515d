// Rotary positions in a config.json: theta, scaling and the share of a head that turns, under all their names.
#pragma once

#include "sim/model/config_fields.h"
#include "sim/model/graph.h"

namespace shard::model {

/// What a family's table says of them.
struct RotaryDefaults {
  double theta = 0;
  double part = 0;  ///< share of a head that turns; 0: all of it, whatever a file says
};

/// rope_theta (gpt_neox: rotary_emb_base) stands at the top, or in transformers 5 inside rope_parameters, there for
/// each kind of layer in some. Sets rotary_base and rotary of the model, whose head_dim and max_sequence are known.
/// Scaling (rope_scaling, or rope_parameters itself) changes numbers, and neither memory nor time: a kind that is not
/// known here is predicted as it is, and Model::not_trained says what is missing.
void read_rotary(ConfigFields& fields, const RotaryDefaults& defaults, Model& model);

}  // namespace shard::model
