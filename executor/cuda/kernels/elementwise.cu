// Sums, copies and conversions, every element by itself.
#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/elementwise.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/packs.h"

namespace shard::cuda {
namespace {

struct Convert {
  SHARD_DEVICE float operator()(float x) const { return x; }
};

struct Add {
  SHARD_DEVICE float operator()(float a, float b) const { return a + b; }
};

template <class T>
SHARD_KERNEL scale_kernel(std::int64_t n, float factor, bool aligned, const T* x, T* y) {
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride()) {
    float a[kPack];
    load_pack(x + i, n - i, aligned, a);
    for (int k = 0; k < kPack; ++k) a[k] = a[k] * factor;
    store_pack(a, n - i, aligned, y + i);
  }
}

template <class T>
SHARD_KERNEL copy_kernel(std::int64_t n, bool aligned, const T* x, T* y) {
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride())
    copy_pack(x + i, n - i, aligned, y + i);
}

}  // namespace

void add(Stream stream, std::int64_t n, ConstElements a, ConstElements b, Elements y) {
  combine<Add>(stream, n, a, b, y);
}

void add_into(Stream stream, std::int64_t n, ConstElements src, Elements dst) {
  combine<Add>(stream, n, dst, src, dst);
}

void convert_copy(Stream stream, std::int64_t n, ConstElements src, Elements dst) {
  if (n == 0) return;
  with_type(src.dtype(), [&]<class From>(From) {
    with_type(dst.dtype(), [&]<class To>(To) {
      const From* x = src.as<From>();
      To* y = dst.as<To>();
      if constexpr (kDtypeOf<From> == kDtypeOf<To>)
        launch(stream, launch_of(n), copy_kernel<To>, n, aligned_packs(x, y), x, y);
      else
        map<Convert>(stream, n, x, y);
    });
  });
}

void scale(Stream stream, std::int64_t n, float factor, ConstElements x, Elements y) {
  if (n == 0) return;
  with_type(y.dtype(), [&]<class T>(T) {
    const T* from = x.as<T>();
    T* to = y.as<T>();
    launch(stream, launch_of(n), scale_kernel<T>, n, factor, aligned_packs(from, to), from, to);
  });
}

}  // namespace shard::cuda
