// Frameworks whose ranks hold whole weights: Megatron, DeepSpeed's and Colossal-AI's stages 1 and 2, plain PyTorch; and
// DeepSpeed's stage 3.
#pragma once

#include <memory>

#include "sim/validate/memory_stream.h"
#include "sim/validate/model_run.h"
#include "sim/validate/run_description.h"

namespace shard::validate {

[[nodiscard]] std::unique_ptr<Rank> make_megatron_rank(MemoryStream& memory, const RunDescription& run);
[[nodiscard]] std::unique_ptr<Rank> make_deepspeed_rank(MemoryStream& memory, const RunDescription& run);
[[nodiscard]] std::unique_ptr<Rank> make_single_rank(MemoryStream& memory, const RunDescription& run);

}  // namespace shard::validate
