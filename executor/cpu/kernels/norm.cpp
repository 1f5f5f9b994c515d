// Layer norm and RMS norm: rows in parallel for y and dx, strips of columns for the parameters.
#include "executor/cpu/kernels/norm.h"

#include <cmath>

#include "executor/cpu/kernels/columns.h"
#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"

namespace shard::cpu {
namespace {

constexpr std::int64_t kRowsPerTask = 8;

SHARD_CLONES void layer_norm_row(std::int64_t n, float epsilon, const float* x, const float* weight, const float* bias,
                                 float* y, float* mean_out, float* rstd_out) {
  const float count = static_cast<float>(n);
  const float mean = lane_sum<float>(n, [x](std::int64_t i) SHARD_LAMBDA { return x[i]; }) / count;
  const float variance = lane_sum<float>(n,
                                         [x, mean](std::int64_t i) SHARD_LAMBDA {
                                           const float d = x[i] - mean;
                                           return d * d;
                                         }) /
                         count;
  const float rstd = 1.0F / std::sqrt(variance + epsilon);
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
  *mean_out = mean;
  *rstd_out = rstd;
}

SHARD_CLONES void rms_norm_row(std::int64_t n, float epsilon, const float* x, const float* weight, float* y,
                               float* rstd_out) {
  const float square = lane_sum<float>(n, [x](std::int64_t i) SHARD_LAMBDA { return x[i] * x[i]; });
  const float rstd = 1.0F / std::sqrt(square / static_cast<float>(n) + epsilon);
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * rstd * weight[i];
  *rstd_out = rstd;
}

// dx of one row; `mean_g` says whether E[g] is subtracted (layer norm).
SHARD_CLONES void backward_row(std::int64_t n, const float* x, const float* weight, float mean, float rstd,
                               const float* dy, float* dx, Store store, bool center) {
  const float count = static_cast<float>(n);
  const float mean_g =
      center ? lane_sum<float>(n, [=](std::int64_t i) SHARD_LAMBDA { return dy[i] * weight[i]; }) / count : 0.0F;
  const float mean_gh =
      lane_sum<float>(n, [=](std::int64_t i) SHARD_LAMBDA { return dy[i] * weight[i] * ((x[i] - mean) * rstd); }) /
      count;
  if (store == Store::add) {
    SHARD_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) {
      const float h = (x[i] - mean) * rstd;
      dx[i] = dx[i] + rstd * (dy[i] * weight[i] - mean_g - h * mean_gh);
    }
  } else {
    SHARD_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) {
      const float h = (x[i] - mean) * rstd;
      dx[i] = rstd * (dy[i] * weight[i] - mean_g - h * mean_gh);
    }
  }
}

// dweight and dbias (null: none) of a strip of columns. `mean` is null for RMS norm.
SHARD_CLONES void backward_strip(const NormShape& shape, std::int64_t width, const float* x, const float* mean,
                                 const float* rstd, const float* dy, float* dweight, float* dbias, Store store) {
  float weight_total[kStrip] = {};
  float bias_total[kStrip] = {};
  for (std::int64_t first = 0; first < shape.rows; first += kRowBlock) {
    float weight_block[kStrip] = {};
    float bias_block[kStrip] = {};
    const std::int64_t end = std::min(first + kRowBlock, shape.rows);
    for (std::int64_t t = first; t < end; ++t) {
      const float* xr = x + t * shape.columns;
      const float* dr = dy + t * shape.columns;
      const float m = mean != nullptr ? mean[t] : 0.0F;
      const float r = rstd[t];
      SHARD_INDEPENDENT
      for (std::int64_t c = 0; c < width; ++c) {
        weight_block[c] = weight_block[c] + dr[c] * ((xr[c] - m) * r);
        bias_block[c] = bias_block[c] + dr[c];
      }
    }
    for (std::int64_t c = 0; c < width; ++c) {
      weight_total[c] = weight_total[c] + weight_block[c];
      bias_total[c] = bias_total[c] + bias_block[c];
    }
  }
  store_strip(width, weight_total, dweight, store);
  if (dbias != nullptr) store_strip(width, bias_total, dbias, store);
}

void norm_backward(ThreadPool& pool, const NormShape& shape, const float* x, const float* weight, const float* mean,
                   const float* rstd, const float* dy, float* dx, Store dx_store, float* dweight, float* dbias,
                   Store parameter_store) {
  const std::int64_t n = shape.columns;
  // Before the rows, which may overwrite dy.
  run_strips(pool, n, [&](std::int64_t column, std::int64_t width) {
    backward_strip(shape, width, x + column, mean, rstd, dy + column, dweight + column,
                   dbias != nullptr ? dbias + column : nullptr, parameter_store);
  });
  run_ranges(
      pool, shape.rows,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t t = first; t < first + count; ++t) {
          backward_row(n, x + t * n, weight, mean != nullptr ? mean[t] : 0.0F, rstd[t], dy + t * n, dx + t * n,
                       dx_store, mean != nullptr);
        }
      },
      kRowsPerTask);
}

}  // namespace

void layer_norm_forward(ThreadPool& pool, const NormShape& shape, float epsilon, const float* x, const float* weight,
                        const float* bias, float* y, float* mean, float* rstd) {
  const std::int64_t n = shape.columns;
  run_ranges(
      pool, shape.rows,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t t = first; t < first + count; ++t) {
          layer_norm_row(n, epsilon, x + t * n, weight, bias, y + t * n, mean + t, rstd + t);
        }
      },
      kRowsPerTask);
}

void layer_norm_backward(ThreadPool& pool, const NormShape& shape, const float* x, const float* weight,
                         const float* mean, const float* rstd, const float* dy, float* dx, Store dx_store,
                         float* dweight, float* dbias, Store parameter_store) {
  norm_backward(pool, shape, x, weight, mean, rstd, dy, dx, dx_store, dweight, dbias, parameter_store);
}

void rms_norm_forward(ThreadPool& pool, const NormShape& shape, float epsilon, const float* x, const float* weight,
                      float* y, float* rstd) {
  const std::int64_t n = shape.columns;
  run_ranges(
      pool, shape.rows,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t t = first; t < first + count; ++t) {
          rms_norm_row(n, epsilon, x + t * n, weight, y + t * n, rstd + t);
        }
      },
      kRowsPerTask);
}

void rms_norm_backward(ThreadPool& pool, const NormShape& shape, const float* x, const float* weight, const float* rstd,
                       const float* dy, float* dx, Store dx_store, float* dweight, Store parameter_store) {
  norm_backward(pool, shape, x, weight, nullptr, rstd, dy, dx, dx_store, dweight, nullptr, parameter_store);
}

}  // namespace shard::cpu
