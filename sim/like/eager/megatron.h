// Megatron-LM core 0.16: GPTModel with the local layer specification, its buffers of gradients and its optimizers.
#pragma once

#include <memory>

#include "sim/like/eager/programs.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {

/// What Megatron is told beside ProgramOptions. One rank of `tensor` that share each layer.
struct MegatronOptions {
  std::int32_t tensor = 1;
  bool sequence_parallel = false;  ///< norms and dropout on a part of the sequence
};

/// megatron/core/models/gpt/gpt_model.py, gpt_layer_specs.py: get_gpt_layer_local_spec().
[[nodiscard]] std::unique_ptr<Program> megatron_program(Runtime& runtime, const model::Model& model,
                                                        const ProgramOptions& options, const MegatronOptions& megatron);

/// Of a llama: get_gpt_layer_with_transformer_engine_spec(), with what is fused by default.
[[nodiscard]] std::unique_ptr<Program> megatron_te_program(Runtime& runtime, const model::Model& model,
                                                           const ProgramOptions& options,
                                                           const MegatronOptions& megatron);

}  // namespace shard::like::eager
