// Cross-entropy and mean squared error, forward and backward.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/shapes.h"

namespace shard::cpu {

// loss and lse are fp32, whatever the type of the rest.

/// lse [T] = log sum exp of each row of logits [T,V]; loss [1] = mean over rows of lse - logits[target], summed in
/// double in order of rows. Every target is in 0..V-1 (the data loader checks).
void cross_entropy_forward(ThreadPool& pool, const CrossEntropyShape& shape, ConstElements logits,
                           const std::int32_t* targets, float* loss, float* lse);

/// dlogits = (softmax(logits) - onehot(target)) scale / T, with softmax = exp(logits - lse). `scale` is loss scale / M
/// (M micro-batches in the global batch). dlogits may be logits.
void cross_entropy_backward(ThreadPool& pool, const CrossEntropyShape& shape, ConstElements logits,
                            const std::int32_t* targets, const float* lse, float scale, Elements dlogits);

// The same where N ranks have V/N logits of each row each.

/// statistics [3,T] of this rank's logits [T,columns]: the largest x, the sum of exp(x - largest), and the logit of the
/// target; -infinity and 0 where it has no column, 0 where the target is another rank's.
void vocabulary_statistics(ThreadPool& pool, const VocabularyPart& part, ConstElements logits,
                           const std::int32_t* targets, float* statistics);

/// loss [1] and lse [T] from the statistics of all ranks [ranks,3,T], in rank order, in double: the same on every rank.
void cross_entropy_from_statistics(std::int64_t ranks, std::int64_t rows, const float* statistics, float* loss,
                                   float* lse);

/// cross_entropy_backward for this rank's columns; 0 in the padding. dlogits may be logits.
void cross_entropy_part_backward(ThreadPool& pool, const VocabularyPart& part, ConstElements logits,
                                 const std::int32_t* targets, const float* lse, float scale, Elements dlogits);

/// loss [1] = mean of (prediction - target)^2 over n values, summed in double over blocks cut by n, in order.
void mse_forward(ThreadPool& pool, std::int64_t n, ConstElements prediction, ConstElements target, float* loss);

/// dprediction = 2 (prediction - target) / n scale. dprediction may be prediction.
void mse_backward(ThreadPool& pool, std::int64_t n, ConstElements prediction, ConstElements target, float scale,
                  Elements dprediction);

}  // namespace shard::cpu
