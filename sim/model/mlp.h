// The mlp family: a chain of linear layers, torch.nn.Sequential(Linear(sizes[0], sizes[1]), Linear(...), ...).
#pragma once

#include "sim/model/config_fields.h"
#include "sim/model/graph.h"

namespace shard::model {

/// Keys: `sizes` (widths, input first, at least two; required), `bias` (true), `loss` ("mse" or "cross_entropy",
/// "mse"). Any other key is a fault. There is no activation function between the layers. Parameters are N.weight [out,
/// in] and N.bias; initialization: torch.nn.Linear's, uniform in +-1/sqrt(in) for both. Model::hidden and intermediate
/// are the widest layer, max_sequence is 1.
void describe_mlp(ConfigFields& fields, Model& model);

/// `batch` samples; `sequence` must be 1.
[[nodiscard]] Graph mlp_graph(const Model& model, std::int64_t batch, std::int64_t sequence);

}  // namespace shard::model
