// Activations: ranges of elements, or of rows where gates and ups are packed.
#include "executor/cpu/kernels/activation.h"

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/kernels/vector_math.h"

namespace shard::cpu {
namespace {

// 1/2 (1 + tanh u) = sigmoid(2u): no cancellation where tanh nears -1.
constexpr float kTwoRootTwoOverPi = 1.59576912F;
constexpr float kCubic = 0.044715F;

template <class T>
SHARD_CLONES void gelu_range(std::int64_t n, const T* x, T* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = to_f32(x[i]);
    y[i] = from_f32<T>(v * sigmoid_f32(kTwoRootTwoOverPi * (v + kCubic * (v * v * v))));
  }
}

template <class T>
SHARD_CLONES void gelu_backward_range(std::int64_t n, const T* x, const T* dy, T* dx) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = to_f32(x[i]);
    const float square = v * v;
    const Sigmoid s = sigmoid_and_slope_f32(kTwoRootTwoOverPi * (v + kCubic * (square * v)));
    const float slope = s.value + v * s.slope * (kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * square));
    dx[i] = from_f32<T>(to_f32(dy[i]) * slope);
  }
}

template <class T>
SHARD_CLONES void swiglu_range(std::int64_t n, const T* gate, const T* up, T* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = to_f32(gate[i]);
    y[i] = from_f32<T>(g * sigmoid_f32(g) * to_f32(up[i]));
  }
}

template <class T>
SHARD_CLONES void swiglu_backward_range(std::int64_t n, const T* gate, const T* up, const T* dy, T* dgate, T* dup) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = to_f32(gate[i]);
    const float u = to_f32(up[i]);
    const float d = to_f32(dy[i]);
    const Sigmoid s = sigmoid_and_slope_f32(g);
    dgate[i] = from_f32<T>(d * u * (s.value + g * s.slope));
    dup[i] = from_f32<T>(d * (g * s.value));
  }
}

template <class T>
SHARD_CLONES void geglu_range(std::int64_t n, const T* gate, const T* up, T* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = to_f32(gate[i]);
    y[i] = from_f32<T>(g * sigmoid_f32(kTwoRootTwoOverPi * (g + kCubic * (g * g * g))) * to_f32(up[i]));
  }
}

template <class T>
SHARD_CLONES void geglu_backward_range(std::int64_t n, const T* gate, const T* up, const T* dy, T* dgate, T* dup) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = to_f32(gate[i]);
    const float u = to_f32(up[i]);
    const float d = to_f32(dy[i]);
    const float square = g * g;
    const Sigmoid s = sigmoid_and_slope_f32(kTwoRootTwoOverPi * (g + kCubic * (square * g)));
    const float slope = s.value + g * s.slope * (kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * square));
    dgate[i] = from_f32<T>(d * u * slope);
    dup[i] = from_f32<T>(d * (g * s.value));
  }
}

template <class T>
SHARD_CLONES void gelu_erf_range(std::int64_t n, const T* x, T* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = to_f32(x[i]);
    y[i] = from_f32<T>(v * normal_f32(v).probability);
  }
}

template <class T>
SHARD_CLONES void gelu_erf_backward_range(std::int64_t n, const T* x, const T* dy, T* dx) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = to_f32(x[i]);
    const Normal normal = normal_f32(v);
    dx[i] = from_f32<T>(to_f32(dy[i]) * (normal.probability + v * normal.density));
  }
}

template <class T>
SHARD_CLONES void relu_range(std::int64_t n, const T* x, T* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = to_f32(x[i]);
    y[i] = from_f32<T>(v < 0.0F ? 0.0F : v);
  }
}

template <class T>
SHARD_CLONES void relu_backward_range(std::int64_t n, const T* x, const T* dy, T* dx) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float d = to_f32(dy[i]);
    dx[i] = from_f32<T>(to_f32(x[i]) > 0.0F ? d : 0.0F);
  }
}

/// fn(values, x, y) of each range.
template <class F>
void map(ThreadPool& pool, std::int64_t n, ConstElements x, Elements y, const F& fn) {
  with_type(x.dtype(), [&]<class T>(T) {
    run_ranges(pool, n, [&fn, xt = x.as<T>(), yt = y.as<T>()](std::int64_t i, std::int64_t count) {
      fn(count, xt + i, yt + i);
    });
  });
}
template <class F>
void combine(ThreadPool& pool, std::int64_t n, ConstElements a, ConstElements b, Elements y, const F& fn) {
  with_type(a.dtype(), [&]<class T>(T) {
    run_ranges(pool, n, [&fn, at = a.as<T>(), bt = b.as<T>(), yt = y.as<T>()](std::int64_t i, std::int64_t count) {
      fn(count, at + i, bt + i, yt + i);
    });
  });
}

/// fn(values, gate, up, dy, dgate, dup) of each range.
template <class F>
void gated_slopes(ThreadPool& pool, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                  Elements dgate, Elements dup, const F& fn) {
  with_type(gate.dtype(), [&]<class T>(T) {
    const T* g = gate.as<T>();
    const T* u = up.as<T>();
    const T* d = dy.as<T>();
    T* dg = dgate.as<T>();
    T* du = dup.as<T>();
    run_ranges(pool, n,
               [=, &fn](std::int64_t i, std::int64_t count) { fn(count, g + i, u + i, d + i, dg + i, du + i); });
  });
}

constexpr std::int64_t kRowsPerTask = 8;

}  // namespace

void geglu_forward(ThreadPool& pool, std::int64_t n, ConstElements gate, ConstElements up, Elements y) {
  combine(pool, n, gate, up, y,
          []<class T>(std::int64_t count, const T* g, const T* u, T* out) { geglu_range<T>(count, g, u, out); });
}

void geglu_backward(ThreadPool& pool, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                    Elements dgate, Elements dup) {
  gated_slopes(pool, n, gate, up, dy, dgate, dup,
               []<class T>(std::int64_t count, const T* g, const T* u, const T* d, T* dg, T* du) {
                 geglu_backward_range<T>(count, g, u, d, dg, du);
               });
}

void gelu_erf_forward(ThreadPool& pool, std::int64_t n, ConstElements x, Elements y) {
  map(pool, n, x, y, []<class T>(std::int64_t count, const T* from, T* to) { gelu_erf_range<T>(count, from, to); });
}

void gelu_erf_backward(ThreadPool& pool, std::int64_t n, ConstElements x, ConstElements dy, Elements dx) {
  combine(pool, n, x, dy, dx, []<class T>(std::int64_t count, const T* from, const T* d, T* to) {
    gelu_erf_backward_range<T>(count, from, d, to);
  });
}

void relu_forward(ThreadPool& pool, std::int64_t n, ConstElements x, Elements y) {
  map(pool, n, x, y, []<class T>(std::int64_t count, const T* from, T* to) { relu_range<T>(count, from, to); });
}

void relu_backward(ThreadPool& pool, std::int64_t n, ConstElements x, ConstElements dy, Elements dx) {
  combine(pool, n, x, dy, dx, []<class T>(std::int64_t count, const T* from, const T* d, T* to) {
    relu_backward_range<T>(count, from, d, to);
  });
}

void swiglu_packed_forward(ThreadPool& pool, std::int64_t rows, std::int64_t columns, ConstElements x, Elements y) {
  with_type(x.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    T* yt = y.as<T>();
    run_ranges(
        pool, rows,
        [=](std::int64_t first, std::int64_t count) {
          for (std::int64_t r = first; r < first + count; ++r)
            swiglu_range<T>(columns, xt + 2 * r * columns, xt + (2 * r + 1) * columns, yt + r * columns);
        },
        kRowsPerTask);
  });
}

void swiglu_packed_backward(ThreadPool& pool, std::int64_t rows, std::int64_t columns, ConstElements x,
                            ConstElements dy, Elements dx) {
  with_type(x.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    const T* d = dy.as<T>();
    T* out = dx.as<T>();
    run_ranges(
        pool, rows,
        [=](std::int64_t first, std::int64_t count) {
          for (std::int64_t r = first; r < first + count; ++r) {
            const std::int64_t gate = 2 * r * columns;
            swiglu_backward_range<T>(columns, xt + gate, xt + gate + columns, d + r * columns, out + gate,
                                     out + gate + columns);
          }
        },
        kRowsPerTask);
  });
}

void gelu_forward(ThreadPool& pool, std::int64_t n, ConstElements x, Elements y) {
  map(pool, n, x, y, []<class T>(std::int64_t count, const T* from, T* to) { gelu_range<T>(count, from, to); });
}

void gelu_backward(ThreadPool& pool, std::int64_t n, ConstElements x, ConstElements dy, Elements dx) {
  combine(pool, n, x, dy, dx, []<class T>(std::int64_t count, const T* from, const T* d, T* to) {
    gelu_backward_range<T>(count, from, d, to);
  });
}

void swiglu_forward(ThreadPool& pool, std::int64_t n, ConstElements gate, ConstElements up, Elements y) {
  combine(pool, n, gate, up, y,
          []<class T>(std::int64_t count, const T* g, const T* u, T* out) { swiglu_range<T>(count, g, u, out); });
}

void swiglu_backward(ThreadPool& pool, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                     Elements dgate, Elements dup) {
  gated_slopes(pool, n, gate, up, dy, dgate, dup,
               []<class T>(std::int64_t count, const T* g, const T* u, const T* d, T* dg, T* du) {
                 swiglu_backward_range<T>(count, g, u, d, dg, du);
               });
}

}  // namespace shard::cpu
