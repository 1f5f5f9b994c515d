// Rotary position embedding, rotate-half form (Hugging Face llama), forward and backward.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/shapes.h"

namespace shard::cpu {

/// x, y [B,S,H*D]. Pairs (i, i + D/2) turn by s * base^(-2i/D). y may be x.
/// As Hugging Face: frequency and angle are rounded to fp32, then their sine and cosine.
void rotary_forward(ThreadPool& pool, const RotaryShape& shape, ConstElements x, Elements y);

/// The rotation by the negative angle. dx may be dy.
void rotary_backward(ThreadPool& pool, const RotaryShape& shape, ConstElements dy, Elements dx);

}  // namespace shard::cpu
