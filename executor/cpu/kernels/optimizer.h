// SGD, Adam and AdamW over a contiguous range of parameters, one fused pass each.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/optimizer_math.h"

namespace shard::cpu {

// Elementwise: the bits do not depend on how a range is cut, on threads or on alignment. `step` points to the number
// of this step for the range, 1 for the first (the caller has already counted it). Formulas: PyTorch, torch/optim,
// single-tensor forms:
//   m += (g - m)(1 - beta1);  v = v beta2 + (1 - beta2) g^2
//   p -= (lr / (1 - beta1^t)) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
// The gradient may be of any type; parameters (masters) and moments are fp32. g is the gradient, widened, times
// `multiplier` (what undoes a loss scale, and clips), rounded to fp32; a multiplier of 1 leaves its bits as they are.

// Each says whether every parameter is finite behind it: looked at piece by piece, while it is in the cache.

/// Adam: weight decay is added to the gradient first, g + weight_decay p. The gradient buffer is not changed.
bool adam(ThreadPool& pool, const OptimizerScalars& scalars, const std::int32_t* step, std::int64_t n,
          ConstElements gradient, float* parameter, float* first_moment, float* second_moment, float multiplier = 1.0F);

/// AdamW: p = p (1 - lr weight_decay) first.
bool adamw(ThreadPool& pool, const OptimizerScalars& scalars, const std::int32_t* step, std::int64_t n,
           ConstElements gradient, float* parameter, float* first_moment, float* second_moment,
           float multiplier = 1.0F);

/// g += weight_decay p; buffer = momentum buffer + g, used in place of g, unless `momentum_buffer` is null;
/// p -= lr g. A momentum buffer of zeros before the first step is PyTorch's unset one.
bool sgd(ThreadPool& pool, const OptimizerScalars& scalars, std::int64_t n, ConstElements gradient, float* parameter,
         float* momentum_buffer, float multiplier = 1.0F);

}  // namespace shard::cpu
