// Which tensor of a checkpoint is which parameter of a model: names, shapes and types, as transformers would load it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "executor/state/tensor_file.h"
#include "sim/model/graph.h"
#include "traces/base/result.h"

namespace shard {

/// Both belong to the files that were searched.
struct FoundTensor {
  const TensorFile* file = nullptr;
  const safetensors::Tensor* tensor = nullptr;
};

struct FoundWeights {
  std::vector<FoundTensor> of_parameter;  ///< one per parameter of the model
  std::vector<std::string> notes;         ///< for people: what was taken for what
};

/// `where`: what holds the files, for errors. Rules and errors: Weights::open.
[[nodiscard]] Result<FoundWeights> find_weights(std::span<const TensorFile> files, const model::Model& model,
                                                const std::string& where);

}  // namespace shard
