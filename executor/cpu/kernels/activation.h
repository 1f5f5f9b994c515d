// GELU (tanh approximation) and SwiGLU, forward and backward, elementwise over n values.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"

namespace shard::cpu {

// An output may be the same buffer as any input; buffers do not overlap in part.

/// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), computed as x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)).
void gelu_forward(ThreadPool& pool, std::int64_t n, ConstElements x, Elements y);
/// dx = dy gelu'(x).
void gelu_backward(ThreadPool& pool, std::int64_t n, ConstElements x, ConstElements dy, Elements dx);

/// y = gate sigmoid(gate) up.
void swiglu_forward(ThreadPool& pool, std::int64_t n, ConstElements gate, ConstElements up, Elements y);
/// dgate and dup are different buffers.
void swiglu_backward(ThreadPool& pool, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                     Elements dgate, Elements dup);

}  // namespace shard::cpu
