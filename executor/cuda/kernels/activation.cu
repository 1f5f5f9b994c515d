// Activations: ReLU, GELU, gated ones, and SwiGLU of gates and ups that lie in one row.
#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/elementwise.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/packs.h"
#include "executor/kernels/vector_math.h"

namespace shard::cuda {
namespace {

// As executor/cpu/kernels/activation.cpp has them: 1/2 (1 + tanh u) = sigmoid(2u).
constexpr float kTwoRootTwoOverPi = 1.59576912F;
constexpr float kCubic = 0.044715F;

struct Gelu {
  SHARD_DEVICE float operator()(float x) const {
    return x * sigmoid_f32(kTwoRootTwoOverPi * (x + kCubic * (x * x * x)));
  }
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

struct Relu {
  SHARD_DEVICE float operator()(float x) const { return x < 0.0F ? 0.0F : x; }
};
struct ReluSlope {
  SHARD_DEVICE float operator()(float x, float dy) const { return x > 0.0F ? dy : 0.0F; }
};
struct GeluErf {
  SHARD_DEVICE float operator()(float x) const { return x * normal_f32(x).probability; }
};
struct GeluErfSlope {
  SHARD_DEVICE float operator()(float x, float dy) const {
    const Normal normal = normal_f32(x);
    return dy * (normal.probability + x * normal.density);
  }
};
struct Geglu {
  SHARD_DEVICE float operator()(float g, float up) const {
    return g * sigmoid_f32(kTwoRootTwoOverPi * (g + kCubic * (g * g * g))) * up;
  }
};

/// What a gate and an up have as gradients.
struct Pair {
  float gate;
  float up;
};
struct GegluSlope {
  SHARD_DEVICE Pair operator()(float g, float u, float d) const {
    const float square = g * g;
    const Sigmoid s = sigmoid_and_slope_f32(kTwoRootTwoOverPi * (g + kCubic * (square * g)));
    const float slope = s.value + g * s.slope * (kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * square));
    return {d * u * slope, d * (g * s.value)};
  }
};
struct SwigluSlope {
  SHARD_DEVICE Pair operator()(float g, float u, float d) const {
    const Sigmoid s = sigmoid_and_slope_f32(g);
    return {d * u * (s.value + g * s.slope), d * (g * s.value)};
  }
};

// Rows of `columns` gates, ups and results, those of a row `step` behind those of the row before: block x takes rows x,
// x + gridDim.x, ... Rows that lie one behind the other are one row.
struct Gated {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t step = 0;  ///< of gates and ups; results are dense
};

template <class T>
SHARD_KERNEL swiglu_rows_kernel(Gated shape, bool aligned, const T* gate, const T* up, T* y) {
  const std::int64_t n = shape.columns;
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x)
    for (std::int64_t c = kPack * static_cast<std::int64_t>(threadIdx.x); c < n; c += kPack * blockDim.x) {
      float g[kPack];
      float u[kPack];
      load_pack(gate + row * shape.step + c, n - c, aligned, g);
      load_pack(up + row * shape.step + c, n - c, aligned, u);
      for (int k = 0; k < kPack; ++k) g[k] = g[k] * sigmoid_f32(g[k]) * u[k];
      store_pack(g, n - c, aligned, y + row * n + c);
    }
}

template <class F, class T>
SHARD_KERNEL gated_slopes_kernel(Gated shape, bool aligned, const T* gate, const T* up, const T* dy, T* dgate, T* dup) {
  const std::int64_t n = shape.columns;
  for (std::int64_t row = blockIdx.y; row < shape.rows; row += gridDim.y)
    for (std::int64_t c = kPack * first_element(); c < n; c += kPack * element_stride()) {
      const std::int64_t at = row * shape.step + c;
      float g[kPack];
      float u[kPack];
      float d[kPack];
      load_pack(gate + at, n - c, aligned, g);
      load_pack(up + at, n - c, aligned, u);
      load_pack(dy + row * n + c, n - c, aligned, d);
      for (int k = 0; k < kPack; ++k) {
        const Pair slopes = F{}(g[k], u[k], d[k]);
        g[k] = slopes.gate;
        u[k] = slopes.up;
      }
      store_pack(g, n - c, aligned, dgate + at);
      store_pack(u, n - c, aligned, dup + at);
    }
}

[[nodiscard]] Gated row_of(std::int64_t n) {
  return {.rows = n > 0 ? 1 : 0, .columns = n, .step = n};
}

/// map<F> of one type.
template <class F>
void each(Stream stream, std::int64_t n, ConstElements x, Elements y) {
  with_type(y.dtype(), [&]<class T>(T) { map<F>(stream, n, x.as<T>(), y.as<T>()); });
}

constexpr std::int64_t kMostRowBlocks = 16384;
[[nodiscard]] std::uint32_t blocks_of_rows(std::int64_t rows) {
  return static_cast<std::uint32_t>(rows < kMostRowBlocks ? rows : kMostRowBlocks);
}

template <class F>
void gated_slopes(Stream stream, const Gated& shape, ConstElements gate, ConstElements up, ConstElements dy,
                  Elements dgate, Elements dup) {
  if (shape.rows == 0 || shape.columns == 0) return;
  with_type(gate.dtype(), [&]<class T>(T) {
    const T* g = gate.as<T>();
    const T* u = up.as<T>();
    const T* d = dy.as<T>();
    T* dg = dgate.as<T>();
    T* du = dup.as<T>();
    const bool aligned =
        shape.rows == 1 ? aligned_packs(g, u, d, dg, du) : aligned_rows(shape.columns, g, u, d, dg, du);
    launch(stream,
           {.blocks_x = blocks_for(packs_of(shape.columns)),
            .blocks_y = blocks_of_rows(shape.rows),
            .threads = shape.rows == 1 ? kThreads : row_threads(shape.columns)},
           gated_slopes_kernel<F, T>, shape, aligned, g, u, d, dg, du);
  });
}

}  // namespace

void gelu_forward(Stream stream, std::int64_t n, ConstElements x, Elements y) {
  each<Gelu>(stream, n, x, y);
}

void gelu_backward(Stream stream, std::int64_t n, ConstElements x, ConstElements dy, Elements dx) {
  combine<GeluSlope>(stream, n, x, dy, dx);
}

void swiglu_forward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, Elements y) {
  combine<Swiglu>(stream, n, gate, up, y);
}

void swiglu_backward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                     Elements dgate, Elements dup) {
  gated_slopes<SwigluSlope>(stream, row_of(n), gate, up, dy, dgate, dup);
}

void relu_forward(Stream stream, std::int64_t n, ConstElements x, Elements y) {
  each<Relu>(stream, n, x, y);
}

void relu_backward(Stream stream, std::int64_t n, ConstElements x, ConstElements dy, Elements dx) {
  combine<ReluSlope>(stream, n, x, dy, dx);
}

void gelu_erf_forward(Stream stream, std::int64_t n, ConstElements x, Elements y) {
  each<GeluErf>(stream, n, x, y);
}

void gelu_erf_backward(Stream stream, std::int64_t n, ConstElements x, ConstElements dy, Elements dx) {
  combine<GeluErfSlope>(stream, n, x, dy, dx);
}

void geglu_forward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, Elements y) {
  combine<Geglu>(stream, n, gate, up, y);
}

void geglu_backward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                    Elements dgate, Elements dup) {
  gated_slopes<GegluSlope>(stream, row_of(n), gate, up, dy, dgate, dup);
}

void swiglu_packed_forward(Stream stream, std::int64_t rows, std::int64_t columns, ConstElements x, Elements y) {
  if (rows == 0 || columns == 0) return;
  with_type(x.dtype(), [&]<class T>(T) {
    const T* gate = x.as<T>();
    const T* up = gate + columns;
    T* yt = y.as<T>();
    const Gated shape{.rows = rows, .columns = columns, .step = 2 * columns};
    launch(stream, {.blocks_x = blocks_of_rows(rows), .threads = row_threads(columns)}, swiglu_rows_kernel<T>, shape,
           aligned_rows(columns, gate, up, yt), gate, up, yt);
  });
}

void swiglu_packed_backward(Stream stream, std::int64_t rows, std::int64_t columns, ConstElements x, ConstElements dy,
                            Elements dx) {
  gated_slopes<SwigluSlope>(stream, {.rows = rows, .columns = columns, .step = 2 * columns}, x, x.from(columns), dy, dx,
                            dx.from(columns));
}

}  // namespace shard::cuda
