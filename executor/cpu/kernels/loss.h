// Cross-entropy and mean squared error, forward and backward.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/elements.h"
#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

struct CrossEntropyShape {
  std::int64_t rows = 0;        ///< T
  std::int64_t vocabulary = 0;  ///< V
};

// loss and lse are fp32, whatever the type of the rest.

/// lse [T] = log sum exp of each row of logits [T,V]; loss [1] = mean over rows of lse - logits[target], summed in
/// double in order of rows. Every target is in 0..V-1 (the data loader checks).
void cross_entropy_forward(ThreadPool& pool, const CrossEntropyShape& shape, ConstElements logits,
                           const std::int32_t* targets, float* loss, float* lse);

/// dlogits = (softmax(logits) - onehot(target)) scale / T, with softmax = exp(logits - lse). `scale` is loss scale / M
/// (M micro-batches in the global batch). dlogits may be logits.
void cross_entropy_backward(ThreadPool& pool, const CrossEntropyShape& shape, ConstElements logits,
                            const std::int32_t* targets, const float* lse, float scale, Elements dlogits);

/// loss [1] = mean of (prediction - target)^2 over n values, summed in double over blocks cut by n, in order.
void mse_forward(ThreadPool& pool, std::int64_t n, ConstElements prediction, ConstElements target, float* loss);

/// dprediction = 2 (prediction - target) / n scale. dprediction may be prediction.
void mse_backward(ThreadPool& pool, std::int64_t n, ConstElements prediction, ConstElements target, float scale,
                  Elements dprediction);

}  // namespace shard::cpu
