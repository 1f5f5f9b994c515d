// Rotary position embedding, rotate-half form (Hugging Face llama), forward and backward; heads put in order for it.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/shapes.h"

namespace shard::cpu {

/// x, y [B,S,(H+passed)*D]. Pairs (i, i + R/2) of a head's first R elements turn by s * base^(-2i/R), or by s times the
/// frequency given, and grow by `factor`; what does not turn is copied. y may be x.
/// As Hugging Face: frequency and angle are rounded to fp32, then their sine and cosine.
void rotary_forward(ThreadPool& pool, const RotaryShape& shape, ConstElements x, Elements y);

/// The rotation by the negative angle, times `factor`. dx may be dy.
void rotary_backward(ThreadPool& pool, const RotaryShape& shape, ConstElements dy, Elements dx);

/// y [T,(H+2K)*D], all queries, all keys, all values; x has of each key head its queries, its key, its value.
void split_groups(ThreadPool& pool, const GroupShape& shape, ConstElements x, Elements y);
/// The other way.
void join_groups(ThreadPool& pool, const GroupShape& shape, ConstElements x, Elements y);

}  // namespace shard::cpu
