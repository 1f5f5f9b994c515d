// A function of every element by itself, or of every pair: a pack of neighbours to a thread.
#pragma once

#include <cstdint>

#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/packs.h"
#include "executor/kernels/elements.h"

namespace shard::cuda {

template <class F, class From, class To>
SHARD_KERNEL map_kernel(std::int64_t n, bool aligned, const From* x, To* y) {
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride()) {
    float a[kPack];
    load_pack(x + i, n - i, aligned, a);
    for (int k = 0; k < kPack; ++k) a[k] = F{}(a[k]);
    store_pack(a, n - i, aligned, y + i);
  }
}

template <class F, class T>
SHARD_KERNEL combine_kernel(std::int64_t n, bool aligned, const T* x, const T* z, T* y) {
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride()) {
    float a[kPack];
    float b[kPack];
    load_pack(x + i, n - i, aligned, a);
    load_pack(z + i, n - i, aligned, b);
    for (int k = 0; k < kPack; ++k) a[k] = F{}(a[k], b[k]);
    store_pack(a, n - i, aligned, y + i);
  }
}

[[nodiscard]] inline Launch launch_of(std::int64_t n) {
  return {.blocks_x = blocks_for(packs_of(n)), .threads = kThreads};
}

/// y = F(x).
template <class F, class From, class To>
void map(Stream stream, std::int64_t n, const From* x, To* y) {
  if (n > 0) launch(stream, launch_of(n), map_kernel<F, From, To>, n, aligned_packs(x, y), x, y);
}

/// y = F(a, b), all of one type.
template <class F>
void combine(Stream stream, std::int64_t n, ConstElements a, ConstElements b, Elements y) {
  if (n == 0) return;
  with_type(y.dtype(), [&]<class T>(T) {
    const T* at = a.as<T>();
    const T* bt = b.as<T>();
    T* yt = y.as<T>();
    launch(stream, launch_of(n), combine_kernel<F, T>, n, aligned_packs(at, bt, yt), at, bt, yt);
  });
}

}  // namespace shard::cuda
