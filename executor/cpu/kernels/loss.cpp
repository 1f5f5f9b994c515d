// Losses: rows in parallel, their sum in order.
#include "executor/cpu/kernels/loss.h"

#include <algorithm>
#include <cmath>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/cpu/kernels/vector_math.h"

namespace shard::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;       // exponentials on the stack before they are summed
constexpr std::int64_t kMostPartials = 64;  // of a sum over all elements

// log of the sum of exponentials of x[0..n): blocks of fp32 lanes, summed in double.
SHARD_CLONES double sum_exponentials(std::int64_t n, const float* x, float peak) {
  float e[kBlock];
  double sum = 0;
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t count = std::min(kBlock, n - first);
    SHARD_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) e[i] = exp_f32(x[first + i] - peak);
    sum += static_cast<double>(lane_sum<float>(count, [&e](std::int64_t i) SHARD_LAMBDA { return e[i]; }));
  }
  return sum;
}

SHARD_CLONES float largest(std::int64_t n, const float* x) {
  return lane_max(n, x);
}

SHARD_CLONES void softmax_gradient(std::int64_t n, const float* x, float lse, float factor, float* dx) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) dx[i] = exp_f32(x[i] - lse) * factor;
}

SHARD_CLONES double square_sum(std::int64_t n, const float* a, const float* b) {
  return lane_sum<double>(n, [a, b](std::int64_t i) SHARD_LAMBDA {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    return d * d;
  });
}

SHARD_CLONES void mse_gradient(std::int64_t n, const float* a, const float* b, float factor, float* d) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) d[i] = (a[i] - b[i]) * factor;
}

}  // namespace

void cross_entropy_forward(ThreadPool& pool, const CrossEntropyShape& shape, const float* logits,
                           const std::int32_t* targets, float* loss, float* lse) {
  const std::int64_t v = shape.vocabulary;
  pool.run(shape.rows, [&](std::int64_t t) {
    const float* row = logits + t * v;
    const float peak = largest(v, row);
    lse[t] = static_cast<float>(static_cast<double>(peak) + std::log(sum_exponentials(v, row, peak)));
  });
  double sum = 0;
  for (std::int64_t t = 0; t < shape.rows; ++t) {
    sum += static_cast<double>(lse[t]) - static_cast<double>(logits[t * v + targets[t]]);
  }
  *loss = static_cast<float>(sum / static_cast<double>(shape.rows));
}

void cross_entropy_backward(ThreadPool& pool, const CrossEntropyShape& shape, const float* logits,
                            const std::int32_t* targets, const float* lse, float scale, float* dlogits) {
  const std::int64_t v = shape.vocabulary;
  const float factor = scale / static_cast<float>(shape.rows);
  pool.run(shape.rows, [&](std::int64_t t) {
    const std::int64_t hit = t * v + targets[t];
    const float target_logit = logits[hit];
    softmax_gradient(v, logits + t * v, lse[t], factor, dlogits + t * v);
    // Not dlogits[hit] - factor: one rounding of the probability's distance from 1, not two.
    dlogits[hit] = (exp_f32(target_logit - lse[t]) - 1.0F) * factor;
  });
}

void mse_forward(ThreadPool& pool, std::int64_t n, const float* prediction, const float* target, float* loss) {
  double partials[kMostPartials] = {};
  const std::int64_t size = std::max(kElementwiseTask, ceil_div(ceil_div(n, kMostPartials), kLanes) * kLanes);
  pool.run(ceil_div(n, size), [&](std::int64_t task) {
    const std::int64_t first = task * size;
    partials[task] = square_sum(std::min(size, n - first), prediction + first, target + first);
  });
  double sum = 0;
  for (const double partial : partials) sum += partial;
  *loss = static_cast<float>(sum / static_cast<double>(n));
}

void mse_backward(ThreadPool& pool, std::int64_t n, const float* prediction, const float* target, float scale,
                  float* dprediction) {
  const float factor = static_cast<float>(2.0 * static_cast<double>(scale) / static_cast<double>(n));
  run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) {
    mse_gradient(count, prediction + i, target + i, factor, dprediction + i);
  });
}

}  // namespace shard::cpu
