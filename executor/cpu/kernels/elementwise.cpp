// Elementwise kernels: fixed cuts of the range, one loop each.
#include "executor/cpu/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"

namespace shard::cpu {
namespace {

template <class T>
SHARD_CLONES void add_range(std::int64_t n, const T* a, const T* b, T* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = from_f32<T>(to_f32(a[i]) + to_f32(b[i]));
}

template <class T>
SHARD_CLONES void scale_range(std::int64_t n, float factor, const T* x, T* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = from_f32<T>(to_f32(x[i]) * factor);
}

template <class From, class To>
SHARD_CLONES void convert_range(std::int64_t n, const From* x, To* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = from_f32<To>(to_f32(x[i]));
}

}  // namespace

void add(ThreadPool& pool, std::int64_t n, ConstElements a, ConstElements b, Elements y) {
  with_type(y.dtype(), [&]<class T>(T) {
    run_ranges(pool, n, [at = a.as<T>(), bt = b.as<T>(), yt = y.as<T>()](std::int64_t i, std::int64_t count) {
      add_range<T>(count, at + i, bt + i, yt + i);
    });
  });
}

void add_into(ThreadPool& pool, std::int64_t n, ConstElements src, Elements dst) {
  add(pool, n, dst, src, dst);
}

void scale(ThreadPool& pool, std::int64_t n, float factor, ConstElements x, Elements y) {
  with_type(y.dtype(), [&]<class T>(T) {
    run_ranges(pool, n, [=, xt = x.as<T>(), yt = y.as<T>()](std::int64_t i, std::int64_t count) {
      scale_range<T>(count, factor, xt + i, yt + i);
    });
  });
}

void zero(ThreadPool& pool, std::int64_t n, Elements y) {
  fill(pool, n, 0.0F, y);
}

void fill(ThreadPool& pool, std::int64_t n, float value, Elements y) {
  with_type(y.dtype(), [&]<class T>(T) {
    run_ranges(pool, n, [v = from_f32<T>(value), yt = y.as<T>()](std::int64_t i, std::int64_t count) {
      std::fill_n(yt + i, count, v);
    });
  });
}

void convert_copy(ThreadPool& pool, std::int64_t n, ConstElements src, Elements dst) {
  if (src.dtype() == dst.dtype()) {
    run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) {
      std::memcpy(dst.from(i).bytes(), src.from(i).bytes(),
                  static_cast<std::size_t>(count * bytes_per_element(dst.dtype())));
    });
    return;
  }
  with_type(src.dtype(), [&]<class From>(From) {
    with_type(dst.dtype(), [&]<class To>(To) {
      run_ranges(pool, n, [x = src.as<From>(), y = dst.as<To>()](std::int64_t i, std::int64_t count) {
        convert_range<From, To>(count, x + i, y + i);
      });
    });
  });
}

}  // namespace shard::cpu
