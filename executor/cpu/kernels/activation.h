// GELU (tanh approximation) and SwiGLU, forward and backward, elementwise over n values.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

// An output may be the same buffer as any input; buffers do not overlap in part.

/// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), computed as x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)).
void gelu_forward(ThreadPool& pool, std::int64_t n, const float* x, float* y);
/// dx = dy gelu'(x).
void gelu_backward(ThreadPool& pool, std::int64_t n, const float* x, const float* dy, float* dx);

/// y = gate sigmoid(gate) up.
void swiglu_forward(ThreadPool& pool, std::int64_t n, const float* gate, const float* up, float* y);
/// dgate and dup are different buffers.
void swiglu_backward(ThreadPool& pool, std::int64_t n, const float* gate, const float* up, const float* dy,
                     float* dgate, float* dup);

}  // namespace shard::cpu
