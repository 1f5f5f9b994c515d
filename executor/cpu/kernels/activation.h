// ReLU, GELU (both forms), SwiGLU and GeGLU, forward and backward, elementwise over n values.
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

/// The same with x [rows, 2 columns], of each row gates and then ups, and y [rows, columns]; nothing in place.
void swiglu_packed_forward(ThreadPool& pool, std::int64_t rows, std::int64_t columns, ConstElements x, Elements y);
void swiglu_packed_backward(ThreadPool& pool, std::int64_t rows, std::int64_t columns, ConstElements x,
                            ConstElements dy, Elements dx);

/// y = gelu(gate) up, gelu as above.
void geglu_forward(ThreadPool& pool, std::int64_t n, ConstElements gate, ConstElements up, Elements y);
/// dgate and dup are different buffers.
void geglu_backward(ThreadPool& pool, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                    Elements dgate, Elements dup);

/// y = x P(x), P(x) = 1/2 (1 + erf(x / sqrt 2)), the normal distribution's function.
void gelu_erf_forward(ThreadPool& pool, std::int64_t n, ConstElements x, Elements y);
void gelu_erf_backward(ThreadPool& pool, std::int64_t n, ConstElements x, ConstElements dy, Elements dx);

/// y = max(x, 0); NaN stays NaN.
void relu_forward(ThreadPool& pool, std::int64_t n, ConstElements x, Elements y);
/// dx = dy where x > 0, else 0.
void relu_backward(ThreadPool& pool, std::int64_t n, ConstElements x, ConstElements dy, Elements dx);

}  // namespace shard::cpu
