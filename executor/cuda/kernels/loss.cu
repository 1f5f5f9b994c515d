// Losses: a block to a row of logits, sums over everything by one block.
#include <limits>

#include "executor/cuda/kernels/block_sum.h"
#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/log_sum.h"
#include "executor/cuda/kernels/packs.h"
#include "executor/kernels/vector_math.h"

namespace shard::cuda {
namespace {

constexpr std::uint32_t kFold = 16;  // threads that bring what all threads have down to one each

/// Of some numbers x: the largest, and the sum of e^(x - largest). In one pass, so that logits are read once.
struct Exponentials {
  float peak = std::numeric_limits<float>::lowest();  // not -infinity, which leaves no difference to itself
  float sum = 0.0F;
};
SHARD_DEVICE void add_number(float x, Exponentials& all) {
  const bool higher = x > all.peak;
  const float smaller = exp_f32(higher ? all.peak - x : x - all.peak);
  all.sum = higher ? all.sum * smaller + 1.0F : all.sum + smaller;
  all.peak = higher ? x : all.peak;
}
SHARD_DEVICE void add_numbers(const Exponentials& other, Exponentials& all) {
  const float peak = other.peak > all.peak ? other.peak : all.peak;
  all.sum = all.sum * exp_f32(all.peak - peak) + other.sum * exp_f32(other.peak - peak);
  all.peak = peak;
}

/// Of a row; whole in the first thread of the block, whose shared memory holds one for each thread.
template <class T>
SHARD_DEVICE Exponentials row_exponentials(std::int64_t n, bool aligned, const T* x) {
  Exponentials own;
  for (std::int64_t i = kPack * threadIdx.x; i < n; i += kPack * blockDim.x) {
    float values[kPack];
    load_pack(x + i, n - i, aligned, values);
    for (int k = 0; k < kPack; ++k)
      if (k < n - i) add_number(values[k], own);
  }
  auto* const all = shared<Exponentials>();
  all[threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.x < kFold) {
    for (std::uint32_t t = threadIdx.x + kFold; t < blockDim.x; t += kFold) add_numbers(all[t], own);
    all[threadIdx.x] = own;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (std::uint32_t t = 1; t < kFold; ++t) add_numbers(all[t], own);
    if (!(own.sum > 0.0F)) own.sum = std::numeric_limits<float>::quiet_NaN();  // nothing but -infinity
  }
  return own;
}

template <class T>
SHARD_KERNEL log_sum_kernel(std::int64_t v, bool aligned, const T* logits, float* lse) {
  const Exponentials row = row_exponentials(v, aligned, logits + blockIdx.x * v);
  if (threadIdx.x == 0) lse[blockIdx.x] = row.peak + log_of_sum(row.sum);
}

/// loss = mean over rows of lse - logit of the target.
template <class T>
SHARD_KERNEL mean_loss_kernel(std::int64_t rows, std::int64_t v, const T* logits, const std::int32_t* targets,
                              const float* lse, float* loss) {
  double sum = 0;
  for (std::int64_t t = threadIdx.x; t < rows; t += blockDim.x)
    sum += static_cast<double>(lse[t]) - static_cast<double>(to_f32(logits[t * v + targets[t]]));
  sum = block_sum(sum, shared<double>());
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / static_cast<double>(rows));
}

template <class T>
SHARD_KERNEL statistics_kernel(VocabularyPart part, bool aligned, const T* logits, const std::int32_t* targets,
                               float* statistics) {
  const std::int64_t t = blockIdx.x;
  const std::int64_t real = part.columns - part.padding;
  const T* const row = logits + t * part.columns;
  Exponentials found = row_exponentials(real, aligned, row);
  if (threadIdx.x != 0) return;
  if (real <= 0) found = {-std::numeric_limits<float>::infinity(), 0.0F};
  const std::int64_t target = targets[t] - part.first;
  statistics[t] = found.peak;
  statistics[part.rows + t] = found.sum;
  statistics[2 * part.rows + t] = target >= 0 && target < real ? to_f32(row[target]) : 0.0F;
}

/// One block.
SHARD_KERNEL loss_from_statistics_kernel(std::int64_t ranks, std::int64_t rows, const float* statistics, float* loss,
                                         float* lse) {
  double total = 0;
  for (std::int64_t t = threadIdx.x; t < rows; t += blockDim.x) {
    float peak = statistics[t];
    for (std::int64_t r = 1; r < ranks; ++r) {
      const float other = statistics[3 * r * rows + t];
      peak = other > peak ? other : peak;
    }
    double sum = 0;
    double target = 0;
    for (std::int64_t r = 0; r < ranks; ++r) {
      const float* const own = statistics + 3 * r * rows + t;
      if (own[rows] != 0.0F)  // else there is no column, and its peak is no number to reckon with
        sum += static_cast<double>(own[rows]) * static_cast<double>(exp_f32(own[0] - peak));
      target += static_cast<double>(own[2 * rows]);
    }
    const float log_sum = peak + log_of_sum(static_cast<float>(sum));
    lse[t] = log_sum;
    total += static_cast<double>(log_sum) - target;
  }
  total = block_sum(total, shared<double>());
  if (threadIdx.x == 0) *loss = static_cast<float>(total / static_cast<double>(rows));
}

/// Each thread reads what it then writes, so `dlogits` may be `logits`.
template <class T>
SHARD_KERNEL softmax_gradient_kernel(VocabularyPart part, bool aligned, const T* logits, const std::int32_t* targets,
                                     const float* lse, float scale, const float* loss_scale, T* dlogits) {
  const std::int64_t t = blockIdx.x;
  const std::int64_t real = part.columns - part.padding;
  const std::int64_t target = targets[t] - part.first;
  const float log_sum = lse[t];
  const float scaled = loss_scale == nullptr ? scale : scale * *loss_scale;
  const float factor = scaled / static_cast<float>(part.rows);
  for (std::int64_t i = kPack * threadIdx.x; i < part.columns; i += kPack * blockDim.x) {
    float values[kPack];
    load_pack(logits + t * part.columns + i, part.columns - i, aligned, values);
    for (int k = 0; k < kPack; ++k) {
      const float p = exp_f32(values[k] - log_sum);
      const float d = (i + k == target ? p - 1.0F : p) * factor;  // one rounding of the distance from 1
      values[k] = i + k < real ? d : 0.0F;
    }
    store_pack(values, part.columns - i, aligned, dlogits + t * part.columns + i);
  }
}

/// One block.
template <class T>
SHARD_KERNEL mse_kernel(std::int64_t n, const T* prediction, const T* target, float* loss) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const double d = static_cast<double>(to_f32(prediction[i])) - static_cast<double>(to_f32(target[i]));
    sum += d * d;
  }
  sum = block_sum(sum, shared<double>());
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / static_cast<double>(n));
}

template <class T>
SHARD_KERNEL mse_gradient_kernel(std::int64_t n, bool aligned, const T* prediction, const T* target, float scale,
                                 const float* loss_scale, T* dprediction) {
  const float scaled = loss_scale == nullptr ? scale : scale * *loss_scale;
  const auto factor = static_cast<float>(2.0 * static_cast<double>(scaled) / static_cast<double>(n));
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride()) {
    float a[kPack];
    float b[kPack];
    load_pack(prediction + i, n - i, aligned, a);
    load_pack(target + i, n - i, aligned, b);
    for (int k = 0; k < kPack; ++k) a[k] = (a[k] - b[k]) * factor;
    store_pack(a, n - i, aligned, dprediction + i);
  }
}

constexpr Launch kOneBlock{.threads = kThreads, .shared_bytes = kMostWarps * sizeof(double)};

/// A block to each row.
Launch by_rows(std::int64_t rows, std::int64_t columns) {
  const std::uint32_t threads = row_threads(columns);
  return {.blocks_x = static_cast<std::uint32_t>(rows),
          .threads = threads,
          .shared_bytes = threads * static_cast<std::uint32_t>(sizeof(Exponentials))};
}

}  // namespace

void cross_entropy_forward(Stream stream, const CrossEntropyShape& shape, ConstElements logits,
                           const std::int32_t* targets, float* loss, float* lse) {
  if (shape.rows <= 0) return;
  const std::int64_t v = shape.vocabulary;
  with_type(logits.dtype(), [&]<class T>(T) {
    const T* const x = logits.as<T>();
    launch(stream, by_rows(shape.rows, v), log_sum_kernel<T>, v, aligned_rows(v, x), x, lse);
    launch(stream, kOneBlock, mean_loss_kernel<T>, shape.rows, v, x, targets, lse, loss);
  });
}

void cross_entropy_backward(Stream stream, const CrossEntropyShape& shape, ConstElements logits,
                            const std::int32_t* targets, const float* lse, float scale, const float* loss_scale,
                            Elements dlogits) {
  const VocabularyPart whole{.rows = shape.rows, .columns = shape.vocabulary, .first = 0, .padding = 0};
  cross_entropy_part_backward(stream, whole, logits, targets, lse, scale, loss_scale, dlogits);
}

void vocabulary_statistics(Stream stream, const VocabularyPart& part, ConstElements logits, const std::int32_t* targets,
                           float* statistics) {
  if (part.rows <= 0) return;
  with_type(logits.dtype(), [&]<class T>(T) {
    const T* const x = logits.as<T>();
    launch(stream, by_rows(part.rows, part.columns), statistics_kernel<T>, part, aligned_rows(part.columns, x), x,
           targets, statistics);
  });
}

void cross_entropy_from_statistics(Stream stream, std::int64_t ranks, std::int64_t rows, const float* statistics,
                                   float* loss, float* lse) {
  if (rows <= 0) return;
  launch(stream, kOneBlock, loss_from_statistics_kernel, ranks, rows, statistics, loss, lse);
}

void cross_entropy_part_backward(Stream stream, const VocabularyPart& part, ConstElements logits,
                                 const std::int32_t* targets, const float* lse, float scale, const float* loss_scale,
                                 Elements dlogits) {
  if (part.rows <= 0) return;
  with_type(logits.dtype(), [&]<class T>(T) {
    const T* const x = logits.as<T>();
    T* const dx = dlogits.as<T>();
    launch(stream, by_rows(part.rows, part.columns), softmax_gradient_kernel<T>, part,
           aligned_rows(part.columns, x, dx), x, targets, lse, scale, loss_scale, dx);
  });
}

void mse_forward(Stream stream, std::int64_t n, ConstElements prediction, ConstElements target, float* loss) {
  if (n <= 0) return;
  with_type(prediction.dtype(),
            [&]<class T>(T) { launch(stream, kOneBlock, mse_kernel<T>, n, prediction.as<T>(), target.as<T>(), loss); });
}

void mse_backward(Stream stream, std::int64_t n, ConstElements prediction, ConstElements target, float scale,
                  const float* loss_scale, Elements dprediction) {
  if (n <= 0) return;
  with_type(prediction.dtype(), [&]<class T>(T) {
    const T* const a = prediction.as<T>();
    const T* const b = target.as<T>();
    T* const d = dprediction.as<T>();
    launch(stream, {.blocks_x = blocks_for(packs_of(n)), .threads = kThreads}, mse_gradient_kernel<T>, n,
           aligned_packs(a, b, d), a, b, scale, loss_scale, d);
  });
}

}  // namespace shard::cuda
