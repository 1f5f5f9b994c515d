// Layer norm and RMS norm: a block to a row for y and dx, strips of columns for the parameters' gradients.
#include <cmath>

#include "executor/cuda/kernels/block_sum.h"
#include "executor/cuda/kernels/column_sums.h"
#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/packs.h"

namespace shard::cuda {
namespace {

// A thread's columns are packs threadIdx.x, threadIdx.x + blockDim.x, ... of the row, whether or not they can be moved
// as packs, so the order of every sum is the same. A thread reads what it writes before others may, so y may be x.

/// Calls fn(first column, columns that are left) for each of this thread's packs.
template <class F>
SHARD_DEVICE void for_own_packs(std::int64_t columns, const F& fn) {
  const std::int64_t stride = static_cast<std::int64_t>(blockDim.x) * kPack;
  for (std::int64_t c = static_cast<std::int64_t>(threadIdx.x) * kPack; c < columns; c += stride) fn(c, columns - c);
}

/// Sum of term(element) over a row; in every thread.
template <class T, class F>
SHARD_DEVICE float sum_of_row(std::int64_t columns, bool aligned, const T* x, float* partials, const F& term) {
  float total = 0.0F;
  for_own_packs(columns, [&](std::int64_t c, std::int64_t left) {
    float v[kPack];
    load_pack(x + c, left, aligned, v);
    for (int k = 0; k < kPack; ++k)
      if (k < left) total = total + term(v[k]);
  });
  return block_sum(total, partials);
}

/// sum = a + b of a row, rounded as it is stored: each thread those elements that it will read again, out of a cache.
/// Null sum: what the norm is of lies there already.
template <class T>
SHARD_DEVICE void add_row(std::int64_t row, std::int64_t columns, bool aligned, const T* a, const T* b, T* sum) {
  if (sum == nullptr) return;
  for_own_packs(columns, [&](std::int64_t c, std::int64_t left) {
    const std::int64_t at = row * columns + c;
    float v[kPack];
    float w[kPack];
    load_pack(a + at, left, aligned, v);
    load_pack(b + at, left, aligned, w);
    for (int k = 0; k < kPack; ++k) v[k] = v[k] + w[k];
    store_pack(v, left, aligned, sum + at);
  });
}

template <class T>
SHARD_KERNEL layer_norm_kernel(NormShape shape, float epsilon, bool aligned, const T* first, const T* second, T* sum,
                               const T* x, const T* weight, const T* bias, T* y, float* mean_out, float* rstd_out) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t n = shape.columns;
  add_row(row, n, aligned, first, second, sum);
  const float count = static_cast<float>(n);
  float* partials = shared<float>();
  x += row * n;
  y += row * n;
  const float mean = sum_of_row(n, aligned, x, partials, [](float v) { return v; }) / count;
  const float variance = sum_of_row(n, aligned, x, partials + kMostWarps,
                                    [mean](float v) {
                                      const float d = v - mean;
                                      return d * d;
                                    }) /
                         count;
  const float rstd = 1.0F / std::sqrt(variance + epsilon);
  for_own_packs(n, [&](std::int64_t c, std::int64_t left) {
    float v[kPack];
    float w[kPack];
    float b[kPack];
    load_pack(x + c, left, aligned, v);
    load_pack(weight + c, left, aligned, w);
    load_pack(bias + c, left, aligned, b);
    for (int k = 0; k < kPack; ++k) v[k] = (v[k] - mean) * rstd * w[k] + b[k];
    store_pack(v, left, aligned, y + c);
  });
  if (threadIdx.x == 0) {
    mean_out[row] = mean;
    rstd_out[row] = rstd;
  }
}

template <class T>
SHARD_KERNEL rms_norm_kernel(NormShape shape, float epsilon, bool aligned, const T* first, const T* second, T* sum,
                             const T* x, const T* weight, T* y, float* rstd_out) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t n = shape.columns;
  add_row(row, n, aligned, first, second, sum);
  x += row * n;
  y += row * n;
  const float square = sum_of_row(n, aligned, x, shared<float>(), [](float v) { return v * v; });
  const float rstd = 1.0F / std::sqrt(square / static_cast<float>(n) + epsilon);
  for_own_packs(n, [&](std::int64_t c, std::int64_t left) {
    float v[kPack];
    float w[kPack];
    load_pack(x + c, left, aligned, v);
    load_pack(weight + c, left, aligned, w);
    for (int k = 0; k < kPack; ++k) v[k] = v[k] * rstd * (shape.weight_offset + w[k]);
    store_pack(v, left, aligned, y + c);
  });
  if (threadIdx.x == 0) rstd_out[row] = rstd;
}

/// h = (x - mean) rstd and g = dy (offset + weight) of a pack.
template <class T>
SHARD_DEVICE void load_terms(float offset, std::int64_t left, bool aligned, const T* x, const T* weight, const T* dy,
                             float mean, float rstd, float (&h)[kPack], float (&g)[kPack]) {
  float w[kPack];
  load_pack(x, left, aligned, h);
  load_pack(weight, left, aligned, w);
  load_pack(dy, left, aligned, g);
  for (int k = 0; k < kPack; ++k) {
    h[k] = (h[k] - mean) * rstd;
    g[k] = g[k] * (offset + w[k]);
  }
}

/// dx; `means` is null for RMS norm, which subtracts no E[g].
template <class T>
SHARD_KERNEL norm_dx_kernel(NormShape shape, bool aligned, const T* x, const T* weight, const float* means,
                            const float* rstds, const T* dy, T* dx, Store store) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t n = shape.columns;
  const float count = static_cast<float>(n);
  const float mean = means != nullptr ? means[row] : 0.0F;
  const float rstd = rstds[row];
  float* partials = shared<float>();
  x += row * n;
  dy += row * n;
  dx += row * n;
  float total_g = 0.0F;
  float total_gh = 0.0F;
  for_own_packs(n, [&](std::int64_t c, std::int64_t left) {
    float h[kPack];
    float g[kPack];
    load_terms(shape.weight_offset, left, aligned, x + c, weight + c, dy + c, mean, rstd, h, g);
    for (int k = 0; k < kPack; ++k) {  // g is 0 where there is no column
      total_g = total_g + g[k];
      total_gh = total_gh + g[k] * h[k];
    }
  });
  const float mean_g = means != nullptr ? block_sum(total_g, partials) / count : 0.0F;
  const float mean_gh = block_sum(total_gh, partials + kMostWarps) / count;
  for_own_packs(n, [&](std::int64_t c, std::int64_t left) {
    float h[kPack];
    float g[kPack];
    load_terms(shape.weight_offset, left, aligned, x + c, weight + c, dy + c, mean, rstd, h, g);
    for (int k = 0; k < kPack; ++k) g[k] = rstd * (g[k] - mean_g - h[k] * mean_gh);
    if (store == Store::add) {
      float before[kPack];
      load_pack(dx + c, left, aligned, before);
      for (int k = 0; k < kPack; ++k) g[k] = before[k] + g[k];
    }
    store_pack(g, left, aligned, dx + c);
  });
}

/// dweight and dbias; null is not wanted. `means` is null for RMS norm.
template <class T>
SHARD_KERNEL norm_parameters_kernel(NormShape shape, bool aligned, const T* x, const float* means, const float* rstds,
                                    const T* dy, T* dweight, T* dbias, Store store) {
  const std::int64_t n = shape.columns;
  const std::int64_t c = strip_column();
  float totals[2][kPack] = {};
  for (std::int64_t t = first_row(); t < shape.rows; t += row_stride()) {
    const float mean = means != nullptr ? means[t] : 0.0F;
    const float rstd = rstds[t];
    float h[kPack];
    float d[kPack];
    load_pack(x + t * n + c, n - c, aligned, h);
    load_pack(dy + t * n + c, n - c, aligned, d);
    for (int k = 0; k < kPack; ++k) {
      totals[0][k] = totals[0][k] + d[k] * ((h[k] - mean) * rstd);
      totals[1][k] = totals[1][k] + d[k];
    }
  }
  store_column_sums<2, T>(totals, n, store, {dweight, dbias});
}

[[nodiscard]] Launch row_launch(const NormShape& shape) {
  constexpr std::uint32_t kSums = 2;
  return {.blocks_x = static_cast<std::uint32_t>(shape.rows),
          .threads = row_threads(shape.columns),
          .shared_bytes = kSums * kMostWarps * static_cast<std::uint32_t>(sizeof(float))};
}

[[nodiscard]] bool empty(const NormShape& shape) {
  return shape.rows == 0 || shape.columns == 0;
}

void norm_backward(Stream stream, const NormShape& shape, ConstElements x, ConstElements weight, const float* mean,
                   const float* rstd, ConstElements dy, Elements dx, Store dx_store, Elements dweight, Elements dbias,
                   Store parameter_store) {
  if (shape.columns == 0) return;
  with_type(x.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    const T* wt = weight.as<T>();
    const T* d = dy.as<T>();
    T* out = dx.as<T>();
    // Before the rows, which may overwrite dy.
    if (dweight.present() || dbias.present())
      launch(stream, column_launch(shape.rows, shape.columns, 2), norm_parameters_kernel<T>, shape,
             aligned_rows(shape.columns, xt, d), xt, mean, rstd, d, dweight.as<T>(), dbias.as<T>(), parameter_store);
    if (dx.present() && shape.rows > 0)
      launch(stream, row_launch(shape), norm_dx_kernel<T>, shape, aligned_rows(shape.columns, xt, wt, d, out), xt, wt,
             mean, rstd, d, out, dx_store);
  });
}

/// Null a, b and sum: x is there.
void layer_norm(Stream stream, const NormShape& shape, float epsilon, ConstElements a, ConstElements b, Elements sum,
                ConstElements x, ConstElements weight, ConstElements bias, Elements y, float* mean, float* rstd) {
  if (empty(shape)) return;
  with_type(x.dtype(), [&]<class T>(T) {
    const T* first = a.as<T>();
    const T* second = b.as<T>();
    T* st = sum.as<T>();
    const T* xt = x.as<T>();
    const T* wt = weight.as<T>();
    const T* bt = bias.as<T>();
    T* yt = y.as<T>();
    launch(stream, row_launch(shape), layer_norm_kernel<T>, shape, epsilon,
           aligned_rows(shape.columns, first, second, xt, wt, bt, yt), first, second, st, xt, wt, bt, yt, mean, rstd);
  });
}

void rms_norm(Stream stream, const NormShape& shape, float epsilon, ConstElements a, ConstElements b, Elements sum,
              ConstElements x, ConstElements weight, Elements y, float* rstd) {
  if (empty(shape)) return;
  with_type(x.dtype(), [&]<class T>(T) {
    const T* first = a.as<T>();
    const T* second = b.as<T>();
    T* st = sum.as<T>();
    const T* xt = x.as<T>();
    const T* wt = weight.as<T>();
    T* yt = y.as<T>();
    launch(stream, row_launch(shape), rms_norm_kernel<T>, shape, epsilon,
           aligned_rows(shape.columns, first, second, xt, wt, yt), first, second, st, xt, wt, yt, rstd);
  });
}

}  // namespace

void layer_norm_forward(Stream stream, const NormShape& shape, float epsilon, ConstElements x, ConstElements weight,
                        ConstElements bias, Elements y, float* mean, float* rstd) {
  layer_norm(stream, shape, epsilon, {}, {}, {}, x, weight, bias, y, mean, rstd);
}

void add_layer_norm_forward(Stream stream, const NormShape& shape, float epsilon, ConstElements a, ConstElements b,
                            ConstElements weight, ConstElements bias, Elements sum, Elements y, float* mean,
                            float* rstd) {
  layer_norm(stream, shape, epsilon, a, b, sum, sum, weight, bias, y, mean, rstd);
}

void layer_norm_backward(Stream stream, const NormShape& shape, ConstElements x, ConstElements weight,
                         const float* mean, const float* rstd, ConstElements dy, Elements dx, Store dx_store,
                         Elements dweight, Elements dbias, Store parameter_store) {
  norm_backward(stream, shape, x, weight, mean, rstd, dy, dx, dx_store, dweight, dbias, parameter_store);
}

void rms_norm_forward(Stream stream, const NormShape& shape, float epsilon, ConstElements x, ConstElements weight,
                      Elements y, float* rstd) {
  rms_norm(stream, shape, epsilon, {}, {}, {}, x, weight, y, rstd);
}

void add_rms_norm_forward(Stream stream, const NormShape& shape, float epsilon, ConstElements a, ConstElements b,
                          ConstElements weight, Elements sum, Elements y, float* rstd) {
  rms_norm(stream, shape, epsilon, a, b, sum, sum, weight, y, rstd);
}

void rms_norm_backward(Stream stream, const NormShape& shape, ConstElements x, ConstElements weight, const float* rstd,
                       ConstElements dy, Elements dx, Store dx_store, Elements dweight, Store parameter_store) {
  norm_backward(stream, shape, x, weight, nullptr, rstd, dy, dx, dx_store, dweight, {}, parameter_store);
}

}  // namespace shard::cuda
