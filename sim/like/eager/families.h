// The model codes of transformers, one a file.
#pragma once

#include <memory>

#include "sim/like/eager/programs.h"

namespace shard::like::eager {

[[nodiscard]] std::unique_ptr<Program> gpt2_program(Runtime& runtime, const model::Model& model,
                                                    const ProgramOptions& options);

/// Of llama and of those that differ from it in biases, norms of heads and windows alone.
[[nodiscard]] std::unique_ptr<Program> llama_program(Runtime& runtime, const model::Model& model,
                                                     const ProgramOptions& options);

}  // namespace shard::like::eager
