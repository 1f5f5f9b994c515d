// Rotary embedding: the angles of one position, computed once, turn that position in all sequences and heads.
#include "executor/cpu/kernels/rotary.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "executor/cpu/kernels/ranges.h"
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

/// From one position to the next.
float frequency(const RotaryShape& shape, std::int64_t pair) {
  if (shape.frequencies != nullptr) return shape.frequencies[pair];
  const double exponent = static_cast<double>(2 * pair) / static_cast<double>(2 * shape.pairs());
  return static_cast<float>(std::pow(static_cast<double>(shape.base), -exponent));
}

/// Copies what does not turn in a token's row.
template <class T>
void pass(const RotaryShape& shape, const T* x, T* y) {
  if (x == y) return;
  const std::int64_t turned = 2 * shape.pairs();
  if (turned < shape.head_dim)
    for (std::int64_t h = 0; h < shape.heads; ++h)
      std::copy_n(x + h * shape.head_dim + turned, shape.head_dim - turned, y + h * shape.head_dim + turned);
  std::copy_n(x + shape.heads * shape.head_dim, shape.passed * shape.head_dim, y + shape.heads * shape.head_dim);
}

template <class T>
void turn(ThreadPool& pool, const RotaryShape& shape, float direction, const T* x, T* y) {
  const std::int64_t half = shape.pairs();
  pool.run(shape.sequence, [&](std::int64_t s) {
    for (std::int64_t first = 0; first < half; first += kPairs) {
      const std::int64_t count = std::min(kPairs, half - first);
      float cosine[kPairs];
      float sine[kPairs];
      for (std::int64_t i = 0; i < count; ++i) {
        const AngleParts angle = angle_parts(static_cast<double>(static_cast<float>(s) * frequency(shape, first + i)));
        cosine[i] = shape.factor * static_cast<float>(angle.cos);
        sine[i] = direction * (shape.factor * static_cast<float>(angle.sin));
      }
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        for (std::int64_t h = 0; h < shape.heads; ++h) {
          const std::int64_t at = (b * shape.sequence + s) * shape.row() + h * shape.head_dim + first;
          rotate<T>(count, cosine, sine, x + at, x + at + half, y + at, y + at + half);
        }
      }
    }
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      const std::int64_t at = (b * shape.sequence + s) * shape.row();
      pass<T>(shape, x + at, y + at);
    }
  });
}

constexpr std::int64_t kRowsPerTask = 16;

/// Head `from(h)` of x becomes head `to(h)` of y.
template <class From, class To>
void move_heads(ThreadPool& pool, const GroupShape& shape, ConstElements x, Elements y, const From& from,
                const To& to) {
  const std::int64_t row = shape.all() * shape.head_dim;
  const auto bytes = static_cast<std::size_t>(shape.head_dim * bytes_per_element(y.dtype()));
  run_ranges(
      pool, shape.rows,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t t = first; t < first + count; ++t)
          for (std::int64_t h = 0; h < shape.all(); ++h)
            std::memcpy(y.from(t * row + to(h) * shape.head_dim).bytes(),
                        x.from(t * row + from(h) * shape.head_dim).bytes(), bytes);
      },
      kRowsPerTask);
}

}  // namespace

void rotary_forward(ThreadPool& pool, const RotaryShape& shape, ConstElements x, Elements y) {
  with_type(x.dtype(), [&]<class T>(T) { turn<T>(pool, shape, 1.0F, x.as<T>(), y.as<T>()); });
}

void rotary_backward(ThreadPool& pool, const RotaryShape& shape, ConstElements dy, Elements dx) {
  with_type(dy.dtype(), [&]<class T>(T) { turn<T>(pool, shape, -1.0F, dy.as<T>(), dx.as<T>()); });
}

void split_groups(ThreadPool& pool, const GroupShape& shape, ConstElements x, Elements y) {
  move_heads(
      pool, shape, x, y, [](std::int64_t h) { return h; }, [&](std::int64_t h) { return shape.place(h); });
}

void join_groups(ThreadPool& pool, const GroupShape& shape, ConstElements x, Elements y) {
  move_heads(
      pool, shape, x, y, [&](std::int64_t h) { return shape.place(h); }, [](std::int64_t h) { return h; });
}

}  // namespace shard::cpu
