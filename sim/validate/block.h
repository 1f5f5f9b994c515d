// The operators of a transformer block, of the head and of the loss, as a framework writes them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/validate/operators.h"
#include "sim/validate/run_description.h"

namespace shard::validate {

/// Bytes of one element of activations.
[[nodiscard]] std::int64_t element_bytes(const RunDescription& run);

/// Bytes of the residual stream on one rank: between blocks, cut along the sequence where that is done.
[[nodiscard]] std::int64_t residual_bytes(const RunDescription& run);

/// One block; value 0 is the residual stream. `weights`: products make their weights' gradients as tensors (otherwise
/// they add to gradients that exist, and nothing is allocated).
[[nodiscard]] std::vector<Operator> block_operators(const RunDescription& run);

/// Final norm and the product with the vocabulary.
[[nodiscard]] std::vector<Operator> head_operators(const RunDescription& run);

/// Forward and backward of the loss. Takes `logits` over, whose owner also drops them; gives their gradient.
[[nodiscard]] Held run_loss(MemoryStream& memory, const RunDescription& run, Held logits, std::int64_t tokens);

/// The sizes in elements of a block's parameters on one rank of a tensor-parallel group, in order of use.
[[nodiscard]] std::vector<std::int64_t> block_parameters(const RunDescription& run);

}  // namespace shard::validate
