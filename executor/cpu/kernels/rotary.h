// Rotary position embedding, rotate-half form (Hugging Face llama), forward and backward.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/elements.h"
#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

struct RotaryShape {
  std::int64_t batch = 0;     ///< B
  std::int64_t sequence = 0;  ///< S; the position of token t is t % S
  std::int64_t heads = 0;     ///< H
  std::int64_t head_dim = 0;  ///< D, even
  float base = 10000.0F;      ///< theta
};

/// x, y [B,S,H*D]. Pairs (i, i + D/2) turn by s * base^(-2i/D). y may be x.
/// As Hugging Face: frequency and angle are rounded to fp32, then their sine and cosine.
void rotary_forward(ThreadPool& pool, const RotaryShape& shape, ConstElements x, Elements y);

/// The rotation by the negative angle. dx may be dy.
void rotary_backward(ThreadPool& pool, const RotaryShape& shape, ConstElements dy, Elements dx);

}  // namespace shard::cpu
