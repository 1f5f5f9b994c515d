// Rotary embedding: the angles of one position, computed once, turn that position in all sequences and heads.
#include "executor/cpu/kernels/rotary.h"

#include <algorithm>
#include <cmath>

#include "executor/cpu/kernels/simd.h"
#include "executor/kernels/angle.h"

namespace shard::cpu {
namespace {

constexpr std::int64_t kPairs = 64;  // pairs handled at once: cosines and sines on the stack

template <class T>
SHARD_CLONES void rotate(std::int64_t n, const float* cosine, const float* sine, const T* low, const T* high,
                         T* low_out, T* high_out) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const float a = to_f32(low[i]);
    const float b = to_f32(high[i]);
    low_out[i] = from_f32<T>(a * cosine[i] - b * sine[i]);
    high_out[i] = from_f32<T>(b * cosine[i] + a * sine[i]);
  }
}

template <class T>
void turn(ThreadPool& pool, const RotaryShape& shape, float direction, const T* x, T* y) {
  const std::int64_t half = shape.head_dim / 2;
  pool.run(shape.sequence, [&](std::int64_t s) {
    for (std::int64_t first = 0; first < half; first += kPairs) {
      const std::int64_t count = std::min(kPairs, half - first);
      float cosine[kPairs];
      float sine[kPairs];
      for (std::int64_t i = 0; i < count; ++i) {
        const double exponent = static_cast<double>(2 * (first + i)) / static_cast<double>(shape.head_dim);
        const float frequency = static_cast<float>(std::pow(static_cast<double>(shape.base), -exponent));
        const AngleParts angle = angle_parts(static_cast<double>(static_cast<float>(s) * frequency));
        cosine[i] = static_cast<float>(angle.cos);
        sine[i] = direction * static_cast<float>(angle.sin);
      }
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        for (std::int64_t h = 0; h < shape.heads; ++h) {
          const std::int64_t at = ((b * shape.sequence + s) * shape.heads + h) * shape.head_dim + first;
          rotate<T>(count, cosine, sine, x + at, x + at + half, y + at, y + at + half);
        }
      }
    }
  });
}

}  // namespace

void rotary_forward(ThreadPool& pool, const RotaryShape& shape, ConstElements x, Elements y) {
  with_type(x.dtype(), [&]<class T>(T) { turn<T>(pool, shape, 1.0F, x.as<T>(), y.as<T>()); });
}

void rotary_backward(ThreadPool& pool, const RotaryShape& shape, ConstElements dy, Elements dx) {
  with_type(dy.dtype(), [&]<class T>(T) { turn<T>(pool, shape, -1.0F, dy.as<T>(), dx.as<T>()); });
}

}  // namespace shard::cpu
