// A decoder's block under torch.compile: one graph forward, one backward, as Inductor lays their memory out.
#pragma once

#include <cstdint>

#include "sim/like/eager/runtime.h"

namespace shard::like::eager {

/// What a compiled block keeps for backward.
enum class CompiledKeep : std::uint8_t {
  all,             ///< what products and attention read, and the factors of the gate
  selected,        ///< of every second product and of attention
  selected_alone,  ///< of every second product
  input,           ///< the block's input
};

struct CompiledBlock {
  std::int64_t tokens = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  CompiledKeep keep = CompiledKeep::all;
};

/// In the order of `weights`; norms' gradients are counted with the last.
struct BlockWeights {
  Tensor q, k, v, o, gate, up, down;
  Tensors norms;
};

[[nodiscard]] Tensor compiled_block(Runtime& r, const CompiledBlock& shape, const BlockWeights& weights,
                                    const Tensor& x);

/// Forward of cross_entropy in one kernel over scores in their own type, whose gradient is of that type.
[[nodiscard]] Tensor compiled_cross_entropy(Runtime& r, const Tensor& scores);

}  // namespace shard::like::eager
