// GELU and SwiGLU.
#include "executor/cpu/kernels/activation.h"

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/cpu/kernels/vector_math.h"

namespace shard::cpu {
namespace {

// 1/2 (1 + tanh u) = sigmoid(2u): no cancellation where tanh nears -1.
constexpr float kTwoRootTwoOverPi = 1.59576912F;
constexpr float kCubic = 0.044715F;

SHARD_CLONES void gelu_range(std::int64_t n, const float* x, float* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    y[i] = v * sigmoid_f32(kTwoRootTwoOverPi * (v + kCubic * (v * v * v)));
  }
}

SHARD_CLONES void gelu_backward_range(std::int64_t n, const float* x, const float* dy, float* dx) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    const float square = v * v;
    const Sigmoid s = sigmoid_and_slope_f32(kTwoRootTwoOverPi * (v + kCubic * (square * v)));
    dx[i] = dy[i] * (s.value + v * s.slope * (kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * square)));
  }
}

SHARD_CLONES void swiglu_range(std::int64_t n, const float* gate, const float* up, float* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = gate[i] * sigmoid_f32(gate[i]) * up[i];
}

SHARD_CLONES void swiglu_backward_range(std::int64_t n, const float* gate, const float* up, const float* dy,
                                        float* dgate, float* dup) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gate[i];
    const float u = up[i];
    const float d = dy[i];
    const Sigmoid s = sigmoid_and_slope_f32(g);
    dgate[i] = d * u * (s.value + g * s.slope);
    dup[i] = d * (g * s.value);
  }
}

}  // namespace

void gelu_forward(ThreadPool& pool, std::int64_t n, const float* x, float* y) {
  run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) { gelu_range(count, x + i, y + i); });
}

void gelu_backward(ThreadPool& pool, std::int64_t n, const float* x, const float* dy, float* dx) {
  run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) { gelu_backward_range(count, x + i, dy + i, dx + i); });
}

void swiglu_forward(ThreadPool& pool, std::int64_t n, const float* gate, const float* up, float* y) {
  run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) { swiglu_range(count, gate + i, up + i, y + i); });
}

void swiglu_backward(ThreadPool& pool, std::int64_t n, const float* gate, const float* up, const float* dy,
                     float* dgate, float* dup) {
  run_ranges(pool, n, [=](std::int64_t i, std::int64_t count) {
    swiglu_backward_range(count, gate + i, up + i, dy + i, dgate + i, dup + i);
  });
}

}  // namespace shard::cpu
