// Sums, conversions and activations: a pack of neighbours to a thread, every element by itself.
#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/packs.h"
#include "executor/kernels/vector_math.h"

namespace shard::cuda {
namespace {

// As executor/cpu/kernels/activation.cpp has them: 1/2 (1 + tanh u) = sigmoid(2u).
constexpr float kTwoRootTwoOverPi = 1.59576912F;
constexpr float kCubic = 0.044715F;

struct Convert {
  SHARD_DEVICE float operator()(float x) const { return x; }
};

struct Gelu {
  SHARD_DEVICE float operator()(float x) const {
    return x * sigmoid_f32(kTwoRootTwoOverPi * (x + kCubic * (x * x * x)));
  }
};

struct Add {
  SHARD_DEVICE float operator()(float a, float b) const { return a + b; }
};

struct GeluSlope {
  SHARD_DEVICE float operator()(float x, float dy) const {
    const float square = x * x;
    const Sigmoid s = sigmoid_and_slope_f32(kTwoRootTwoOverPi * (x + kCubic * (square * x)));
    return dy * (s.value + x * s.slope * (kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * square)));
  }
};

struct Swiglu {
  SHARD_DEVICE float operator()(float gate, float up) const { return gate * sigmoid_f32(gate) * up; }
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

template <class T>
SHARD_KERNEL copy_kernel(std::int64_t n, bool aligned, const T* x, T* y) {
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride())
    copy_pack(x + i, n - i, aligned, y + i);
}

template <class T>
SHARD_KERNEL swiglu_backward_kernel(std::int64_t n, bool aligned, const T* gate, const T* up, const T* dy, T* dgate,
                                    T* dup) {
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride()) {
    float g[kPack];
    float u[kPack];
    float d[kPack];
    load_pack(gate + i, n - i, aligned, g);
    load_pack(up + i, n - i, aligned, u);
    load_pack(dy + i, n - i, aligned, d);
    for (int k = 0; k < kPack; ++k) {
      const Sigmoid s = sigmoid_and_slope_f32(g[k]);
      u[k] = d[k] * u[k] * (s.value + g[k] * s.slope);
      d[k] = d[k] * (g[k] * s.value);
    }
    store_pack(u, n - i, aligned, dgate + i);
    store_pack(d, n - i, aligned, dup + i);
  }
}

[[nodiscard]] Launch launch_of(std::int64_t n) {
  return {.blocks_x = blocks_for(packs_of(n)), .threads = kThreads};
}

template <class F, class From, class To>
void map(Stream stream, std::int64_t n, const From* x, To* y) {
  if (n > 0) launch(stream, launch_of(n), map_kernel<F, From, To>, n, aligned_packs(x, y), x, y);
}

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

void gelu_forward(Stream stream, std::int64_t n, ConstElements x, Elements y) {
  with_type(x.dtype(), [&]<class T>(T) { map<Gelu>(stream, n, x.as<T>(), y.as<T>()); });
}

void gelu_backward(Stream stream, std::int64_t n, ConstElements x, ConstElements dy, Elements dx) {
  combine<GeluSlope>(stream, n, x, dy, dx);
}

void swiglu_forward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, Elements y) {
  combine<Swiglu>(stream, n, gate, up, y);
}

void swiglu_backward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                     Elements dgate, Elements dup) {
  if (n == 0) return;
  with_type(gate.dtype(), [&]<class T>(T) {
    const T* g = gate.as<T>();
    const T* u = up.as<T>();
    const T* d = dy.as<T>();
    T* dg = dgate.as<T>();
    T* du = dup.as<T>();
    launch(stream, launch_of(n), swiglu_backward_kernel<T>, n, aligned_packs(g, u, d, dg, du), g, u, d, dg, du);
  });
}

}  // namespace shard::cuda
