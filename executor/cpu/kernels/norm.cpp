// Layer norm and RMS norm: rows in parallel for y and dx, strips of columns for the parameters.
#include "executor/cpu/kernels/norm.h"

#include <cmath>

#include "executor/cpu/kernels/columns.h"
#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"

namespace shard::cpu {
namespace {

constexpr std::int64_t kRowsPerTask = 8;

template <class T>
SHARD_CLONES void layer_norm_row(std::int64_t n, float epsilon, const T* x, const T* weight, const T* bias, T* y,
                                 float* mean_out, float* rstd_out) {
  const float count = static_cast<float>(n);
  const float mean = lane_sum<float>(n, [x](std::int64_t i) SHARD_LAMBDA { return to_f32(x[i]); }) / count;
  const float variance = lane_sum<float>(n,
                                         [x, mean](std::int64_t i) SHARD_LAMBDA {
                                           const float d = to_f32(x[i]) - mean;
                                           return d * d;
                                         }) /
                         count;
  const float rstd = 1.0F / std::sqrt(variance + epsilon);
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = from_f32<T>((to_f32(x[i]) - mean) * rstd * to_f32(weight[i]) + to_f32(bias[i]));
  }
  *mean_out = mean;
  *rstd_out = rstd;
}

template <class T>
SHARD_CLONES void rms_norm_row(std::int64_t n, float epsilon, float offset, const T* x, const T* weight, T* y,
                               float* rstd_out) {
  const float square = lane_sum<float>(n, [x](std::int64_t i) SHARD_LAMBDA { return to_f32(x[i]) * to_f32(x[i]); });
  const float rstd = 1.0F / std::sqrt(square / static_cast<float>(n) + epsilon);
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = from_f32<T>(to_f32(x[i]) * rstd * (offset + to_f32(weight[i])));
  *rstd_out = rstd;
}

// dx of one row; `center` says whether E[g] is subtracted (layer norm).
template <class T>
SHARD_CLONES void backward_row(std::int64_t n, float offset, const T* x, const T* weight, float mean, float rstd,
                               const T* dy, T* dx, Store store, bool center) {
  const float count = static_cast<float>(n);
  const auto g = [=](std::int64_t i) SHARD_LAMBDA { return to_f32(dy[i]) * (offset + to_f32(weight[i])); };
  const auto h = [=](std::int64_t i) SHARD_LAMBDA { return (to_f32(x[i]) - mean) * rstd; };
  const float mean_g = center ? lane_sum<float>(n, g) / count : 0.0F;
  const float mean_gh = lane_sum<float>(n, [=](std::int64_t i) SHARD_LAMBDA { return g(i) * h(i); }) / count;
  if (store == Store::add) {
    SHARD_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) {
      dx[i] = from_f32<T>(to_f32(dx[i]) + rstd * (g(i) - mean_g - h(i) * mean_gh));
    }
  } else {
    SHARD_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) dx[i] = from_f32<T>(rstd * (g(i) - mean_g - h(i) * mean_gh));
  }
}

// dweight and dbias (null: not wanted) of a strip of columns. `mean` is null for RMS norm.
template <class T>
SHARD_CLONES void backward_strip(const NormShape& shape, std::int64_t width, const T* x, const float* mean,
                                 const float* rstd, const T* dy, T* dweight, T* dbias, Store store) {
  float weight_total[kStrip] = {};
  float bias_total[kStrip] = {};
  for (std::int64_t first = 0; first < shape.rows; first += kRowBlock) {
    float weight_block[kStrip] = {};
    float bias_block[kStrip] = {};
    const std::int64_t end = std::min(first + kRowBlock, shape.rows);
    for (std::int64_t t = first; t < end; ++t) {
      const T* xr = x + t * shape.columns;
      const T* dr = dy + t * shape.columns;
      const float m = mean != nullptr ? mean[t] : 0.0F;
      const float r = rstd[t];
      SHARD_INDEPENDENT
      for (std::int64_t c = 0; c < width; ++c) {
        const float d = to_f32(dr[c]);
        weight_block[c] = weight_block[c] + d * ((to_f32(xr[c]) - m) * r);
        bias_block[c] = bias_block[c] + d;
      }
    }
    for (std::int64_t c = 0; c < width; ++c) {
      weight_total[c] = weight_total[c] + weight_block[c];
      bias_total[c] = bias_total[c] + bias_block[c];
    }
  }
  if (dweight != nullptr) store_strip(width, weight_total, dweight, store);
  if (dbias != nullptr) store_strip(width, bias_total, dbias, store);
}

template <class T>
void norm_backward(ThreadPool& pool, const NormShape& shape, const T* x, const T* weight, const float* mean,
                   const float* rstd, const T* dy, T* dx, Store dx_store, T* dweight, T* dbias, Store parameter_store) {
  const std::int64_t n = shape.columns;
  // Before the rows, which may overwrite dy.
  if (dweight != nullptr || dbias != nullptr)
    run_strips(pool, n, [&](std::int64_t column, std::int64_t width) {
      backward_strip<T>(shape, width, x + column, mean, rstd, dy + column,
                        dweight != nullptr ? dweight + column : nullptr, dbias != nullptr ? dbias + column : nullptr,
                        parameter_store);
    });
  if (dx == nullptr) return;
  run_ranges(
      pool, shape.rows,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t t = first; t < first + count; ++t) {
          backward_row<T>(n, shape.weight_offset, x + t * n, weight, mean != nullptr ? mean[t] : 0.0F, rstd[t],
                          dy + t * n, dx + t * n, dx_store, mean != nullptr);
        }
      },
      kRowsPerTask);
}

}  // namespace

void layer_norm_forward(ThreadPool& pool, const NormShape& shape, float epsilon, ConstElements x, ConstElements weight,
                        ConstElements bias, Elements y, float* mean, float* rstd) {
  const std::int64_t n = shape.columns;
  with_type(x.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    const T* wt = weight.as<T>();
    const T* bt = bias.as<T>();
    T* yt = y.as<T>();
    run_ranges(
        pool, shape.rows,
        [=](std::int64_t first, std::int64_t count) {
          for (std::int64_t t = first; t < first + count; ++t) {
            layer_norm_row<T>(n, epsilon, xt + t * n, wt, bt, yt + t * n, mean + t, rstd + t);
          }
        },
        kRowsPerTask);
  });
}

void layer_norm_backward(ThreadPool& pool, const NormShape& shape, ConstElements x, ConstElements weight,
                         const float* mean, const float* rstd, ConstElements dy, Elements dx, Store dx_store,
                         Elements dweight, Elements dbias, Store parameter_store) {
  with_type(x.dtype(), [&]<class T>(T) {
    norm_backward<T>(pool, shape, x.as<T>(), weight.as<T>(), mean, rstd, dy.as<T>(), dx.as<T>(), dx_store,
                     dweight.as<T>(), dbias.as<T>(), parameter_store);
  });
}

void rms_norm_forward(ThreadPool& pool, const NormShape& shape, float epsilon, ConstElements x, ConstElements weight,
                      Elements y, float* rstd) {
  const std::int64_t n = shape.columns;
  const float offset = shape.weight_offset;
  with_type(x.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    const T* wt = weight.as<T>();
    T* yt = y.as<T>();
    run_ranges(
        pool, shape.rows,
        [=](std::int64_t first, std::int64_t count) {
          for (std::int64_t t = first; t < first + count; ++t) {
            rms_norm_row<T>(n, epsilon, offset, xt + t * n, wt, yt + t * n, rstd + t);
          }
        },
        kRowsPerTask);
  });
}

void rms_norm_backward(ThreadPool& pool, const NormShape& shape, ConstElements x, ConstElements weight,
                       const float* rstd, ConstElements dy, Elements dx, Store dx_store, Elements dweight,
                       Store parameter_store) {
  with_type(x.dtype(), [&]<class T>(T) {
    norm_backward<T>(pool, shape, x.as<T>(), weight.as<T>(), nullptr, rstd, dy.as<T>(), dx.as<T>(), dx_store,
                     dweight.as<T>(), nullptr, parameter_store);
  });
}

}  // namespace shard::cpu
