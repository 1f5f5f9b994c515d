// Losses: rows in parallel, their sum in order.
#include "executor/cpu/kernels/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/kernels/vector_math.h"

namespace shard::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;       // exponentials on the stack before they are summed
constexpr std::int64_t kMostPartials = 64;  // of a sum over all elements

// log of the sum of exponentials of x[0..n): blocks of fp32 lanes, summed in double.
template <class T>
SHARD_CLONES double sum_exponentials(std::int64_t n, const T* x, float peak) {
  float e[kBlock];
  double sum = 0;
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t count = std::min(kBlock, n - first);
    SHARD_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) e[i] = exp_f32(to_f32(x[first + i]) - peak);
    sum += static_cast<double>(lane_sum<float>(count, [&e](std::int64_t i) SHARD_LAMBDA { return e[i]; }));
  }
  return sum;
}

template <class T>
SHARD_CLONES float largest(std::int64_t n, const T* x) {
  return lane_max(n, x);
}

template <class T>
SHARD_CLONES void softmax_gradient(std::int64_t n, const T* x, float lse, float factor, T* dx) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) dx[i] = from_f32<T>(exp_f32(to_f32(x[i]) - lse) * factor);
}

template <class T>
SHARD_CLONES double square_sum(std::int64_t n, const T* a, const T* b) {
  return lane_sum<double>(n, [a, b](std::int64_t i) SHARD_LAMBDA {
    const double d = static_cast<double>(to_f32(a[i])) - static_cast<double>(to_f32(b[i]));
    return d * d;
  });
}

template <class T>
SHARD_CLONES void mse_gradient(std::int64_t n, const T* a, const T* b, float factor, T* d) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) d[i] = from_f32<T>((to_f32(a[i]) - to_f32(b[i])) * factor);
}

}  // namespace

void cross_entropy_forward(ThreadPool& pool, const CrossEntropyShape& shape, ConstElements logits,
                           const std::int32_t* targets, float* loss, float* lse) {
  const std::int64_t v = shape.vocabulary;
  with_type(logits.dtype(), [&]<class T>(T) {
    const T* x = logits.as<T>();
    pool.run(shape.rows, [&](std::int64_t t) {
      const T* row = x + t * v;
      const float peak = largest<T>(v, row);
      lse[t] = static_cast<float>(static_cast<double>(peak) + std::log(sum_exponentials<T>(v, row, peak)));
    });
    double sum = 0;
    for (std::int64_t t = 0; t < shape.rows; ++t) {
      sum += static_cast<double>(lse[t]) - static_cast<double>(to_f32(x[t * v + targets[t]]));
    }
    *loss = static_cast<float>(sum / static_cast<double>(shape.rows));
  });
}

void cross_entropy_backward(ThreadPool& pool, const CrossEntropyShape& shape, ConstElements logits,
                            const std::int32_t* targets, const float* lse, float scale, Elements dlogits) {
  const std::int64_t v = shape.vocabulary;
  const float factor = scale / static_cast<float>(shape.rows);
  with_type(logits.dtype(), [&]<class T>(T) {
    const T* x = logits.as<T>();
    T* dx = dlogits.as<T>();
    pool.run(shape.rows, [&](std::int64_t t) {
      const std::int64_t hit = t * v + targets[t];
      const float target_logit = to_f32(x[hit]);
      softmax_gradient<T>(v, x + t * v, lse[t], factor, dx + t * v);
      // Not dx[hit] - factor: one rounding of the probability's distance from 1, not two.
      dx[hit] = from_f32<T>((exp_f32(target_logit - lse[t]) - 1.0F) * factor);
    });
  });
}

void vocabulary_statistics(ThreadPool& pool, const VocabularyPart& part, ConstElements logits,
                           const std::int32_t* targets, float* statistics) {
  const std::int64_t real = part.columns - part.padding;
  float* peaks = statistics;
  float* sums = statistics + part.rows;
  float* target_logits = statistics + 2 * part.rows;
  with_type(logits.dtype(), [&]<class T>(T) {
    pool.run(part.rows, [&, x = logits.as<T>()](std::int64_t t) {
      const T* row = x + t * part.columns;
      const std::int64_t target = targets[t] - part.first;
      peaks[t] = real > 0 ? largest<T>(real, row) : -std::numeric_limits<float>::infinity();
      sums[t] = real > 0 ? static_cast<float>(sum_exponentials<T>(real, row, peaks[t])) : 0.0F;
      target_logits[t] = target >= 0 && target < real ? to_f32(row[target]) : 0.0F;
    });
  });
}

void cross_entropy_from_statistics(std::int64_t ranks, std::int64_t rows, const float* statistics, float* loss,
                                   float* lse) {
  double total = 0;
  for (std::int64_t t = 0; t < rows; ++t) {
    const auto of_rank = [&](std::int64_t r, std::int64_t which) {
      return static_cast<double>(statistics[(3 * r + which) * rows + t]);
    };
    double peak = of_rank(0, 0);
    for (std::int64_t r = 1; r < ranks; ++r) peak = std::max(peak, of_rank(r, 0));
    double sum = 0;
    double target = 0;
    for (std::int64_t r = 0; r < ranks; ++r) {
      if (of_rank(r, 1) != 0) sum += of_rank(r, 1) * std::exp(of_rank(r, 0) - peak);
      target += of_rank(r, 2);
    }
    lse[t] = static_cast<float>(peak + std::log(sum));
    total += static_cast<double>(lse[t]) - target;
  }
  *loss = static_cast<float>(total / static_cast<double>(rows));
}

void cross_entropy_part_backward(ThreadPool& pool, const VocabularyPart& part, ConstElements logits,
                                 const std::int32_t* targets, const float* lse, float scale, Elements dlogits) {
  const std::int64_t real = part.columns - part.padding;
  const float factor = scale / static_cast<float>(part.rows);
  with_type(logits.dtype(), [&]<class T>(T) {
    pool.run(part.rows, [&, x = logits.as<T>(), dx = dlogits.as<T>()](std::int64_t t) {
      const T* row = x + t * part.columns;
      T* out = dx + t * part.columns;
      const std::int64_t target = targets[t] - part.first;
      const bool here = target >= 0 && target < real;
      const float target_logit = here ? to_f32(row[target]) : 0.0F;
      softmax_gradient<T>(real, row, lse[t], factor, out);
      if (here) out[target] = from_f32<T>((exp_f32(target_logit - lse[t]) - 1.0F) * factor);
      std::fill_n(out + real, part.padding, T{});
    });
  });
}

void mse_forward(ThreadPool& pool, std::int64_t n, ConstElements prediction, ConstElements target, float* loss) {
  double partials[kMostPartials] = {};
  const std::int64_t size = std::max(kElementwiseTask, ceil_div(ceil_div(n, kMostPartials), kLanes) * kLanes);
  with_type(prediction.dtype(), [&]<class T>(T) {
    const T* a = prediction.as<T>();
    const T* b = target.as<T>();
    pool.run(ceil_div(n, size), [&](std::int64_t task) {
      const std::int64_t first = task * size;
      partials[task] = square_sum<T>(std::min(size, n - first), a + first, b + first);
    });
  });
  double sum = 0;
  for (const double partial : partials) sum += partial;
  *loss = static_cast<float>(sum / static_cast<double>(n));
}

void mse_backward(ThreadPool& pool, std::int64_t n, ConstElements prediction, ConstElements target, float scale,
                  Elements dprediction) {
  const float factor = static_cast<float>(2.0 * static_cast<double>(scale) / static_cast<double>(n));
  with_type(prediction.dtype(), [&]<class T>(T) {
    run_ranges(pool, n,
               [=, a = prediction.as<T>(), b = target.as<T>(), d = dprediction.as<T>()](
                   std::int64_t i, std::int64_t count) { mse_gradient<T>(count, a + i, b + i, factor, d + i); });
  });
}

}  // namespace shard::cpu
