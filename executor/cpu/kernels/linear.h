// Linear layers: y = x W^T + b, and its gradients, for both weight layouts.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/store.h"
#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

struct LinearShape {
  std::int64_t rows = 0;       ///< T
  std::int64_t in = 0;         ///< I
  std::int64_t out = 0;        ///< O
  bool weight_in_out = false;  ///< weight is [I,O] (gpt2's Conv1D) instead of [O,I]
};

/// x [T,I], bias [O] or null -> y [T,O].
void linear_forward(ThreadPool& pool, const LinearShape& shape, const float* x, const float* weight, const float* bias,
                    float* y);

/// dx [T,I] = (or +=) dy [T,O] * W.
void linear_backward_input(ThreadPool& pool, const LinearShape& shape, const float* dy, const float* weight, float* dx,
                           Store store);

/// dweight (laid out as weight) = (or +=) the sum over rows of dy (x) x; dbias [O] = (or +=) the sum over rows of dy,
/// unless null. The bias sum adds blocks of 32 rows in order of rows.
void linear_backward_weight(ThreadPool& pool, const LinearShape& shape, const float* x, const float* dy, float* dweight,
                            float* dbias, Store store);

}  // namespace shard::cpu
