// Rotary embedding: a block to a position, whose threads know their angle's sine and cosine and turn it in all heads;
// heads put in order for it.
#include <algorithm>
#include <array>
#include <cmath>

#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/kernels/angle.h"

namespace shard::cuda {
namespace {

constexpr std::int64_t kPairs = 64;  ///< of one launch

/// Pairs first, first + 1, ... of every head, and the angle from one position to the next of each.
struct Pairs {
  std::int64_t first = 0;
  std::uint32_t count = 0;
  std::array<float, kPairs> frequency{};
};

template <class T>
SHARD_KERNEL turn_kernel(RotaryShape shape, Pairs pairs, float direction, const T* x, T* y) {
  const std::uint32_t pair = threadIdx.x % pairs.count;
  const std::uint32_t slot = threadIdx.x / pairs.count;
  const std::uint32_t slots = blockDim.x / pairs.count;
  if (slot >= slots) return;
  const std::int64_t half = shape.pairs();
  const std::uint32_t heads = static_cast<std::uint32_t>(shape.heads);
  const std::uint32_t turns = static_cast<std::uint32_t>(shape.batch) * heads;
  const float frequency = pairs.frequency[pair];
  for (std::int64_t s = blockIdx.x; s < shape.sequence; s += gridDim.x) {
    // As the CPU's: angle in fp32, its sine and cosine rounded to fp32.
    const AngleParts angle = angle_parts(static_cast<double>(static_cast<float>(s) * frequency));
    const float cosine = shape.factor * static_cast<float>(angle.cos);
    const float sine = direction * (shape.factor * static_cast<float>(angle.sin));
    for (std::uint32_t i = slot; i < turns; i += slots) {
      const std::int64_t b = i / heads;
      const std::int64_t h = i % heads;
      const std::int64_t at = (b * shape.sequence + s) * shape.row() + h * shape.head_dim + pairs.first + pair;
      const float low = to_f32(x[at]);
      const float high = to_f32(x[at + half]);
      y[at] = from_f32<T>(low * cosine - high * sine);
      y[at + half] = from_f32<T>(high * cosine + low * sine);
    }
  }
}

/// Elements of a row of heads, those of head `from` in x to head `to` in y: block x takes rows x, x + gridDim.x, ...
template <class T, class From, class To>
SHARD_DEVICE void move_heads(std::int64_t rows, std::int64_t all, std::int64_t head_dim, const T* x, T* y,
                             const From& from, const To& to) {
  const std::int64_t n = all * head_dim;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x)
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const std::int64_t head = i / head_dim;
      const std::int64_t column = i % head_dim;
      y[row * n + to(head) * head_dim + column] = x[row * n + from(head) * head_dim + column];
    }
}

template <class T>
SHARD_KERNEL split_groups_kernel(GroupShape shape, const T* x, T* y) {
  move_heads(
      shape.rows, shape.all(), shape.head_dim, x, y, [](std::int64_t h) { return h; },
      [&](std::int64_t h) { return shape.place(h); });
}

template <class T>
SHARD_KERNEL join_groups_kernel(GroupShape shape, const T* x, T* y) {
  move_heads(
      shape.rows, shape.all(), shape.head_dim, x, y, [&](std::int64_t h) { return shape.place(h); },
      [](std::int64_t h) { return h; });
}

/// What does not turn.
template <class T>
SHARD_KERNEL pass_kernel(RotaryShape shape, const T* x, T* y) {
  const std::int64_t n = shape.row();
  const std::int64_t turning = shape.heads * shape.head_dim;
  for (std::int64_t row = blockIdx.x; row < shape.batch * shape.sequence; row += gridDim.x)
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
      if (i >= turning || i % shape.head_dim >= 2 * shape.pairs()) y[row * n + i] = x[row * n + i];
}

[[nodiscard]] Pairs pairs_of(const RotaryShape& shape, std::int64_t first) {
  Pairs pairs{.first = first, .count = static_cast<std::uint32_t>(std::min(kPairs, shape.pairs() - first))};
  for (std::uint32_t i = 0; i < pairs.count; ++i) {
    const double exponent = static_cast<double>(2 * (first + i)) / static_cast<double>(2 * shape.pairs());
    pairs.frequency[i] = shape.frequencies != nullptr
                             ? shape.frequencies[first + i]
                             : static_cast<float>(std::pow(static_cast<double>(shape.base), -exponent));
  }
  return pairs;
}

constexpr std::int64_t kMostRowBlocks = 16384;
[[nodiscard]] Launch launch_of_rows(std::int64_t rows, std::int64_t columns) {
  const std::int64_t warps = (columns + kWarp - 1) / kWarp;
  return {.blocks_x = static_cast<std::uint32_t>(std::min(rows, kMostRowBlocks)),
          .threads = static_cast<std::uint32_t>(std::min<std::int64_t>(kThreads, warps * kWarp))};
}

void turn(Stream stream, RotaryShape shape, float direction, ConstElements x, Elements y) {
  const std::int64_t turns = shape.batch * shape.heads;
  if (turns == 0 || shape.sequence == 0) return;
  with_type(x.dtype(), [&]<class T>(T) {
    const T* from = x.as<T>();
    T* to = y.as<T>();
    const RotaryShape of_host = shape;
    shape.frequencies = nullptr;  // the pairs have them
    for (std::int64_t first = 0; first < shape.pairs(); first += kPairs) {
      const Pairs pairs = pairs_of(of_host, first);
      const std::int64_t threads = std::min<std::int64_t>(kThreads, pairs.count * turns);
      launch(stream,
             {.blocks_x = static_cast<std::uint32_t>(shape.sequence), .threads = static_cast<std::uint32_t>(threads)},
             turn_kernel<T>, shape, pairs, direction, from, to);
    }
    if (from != to && (shape.passed > 0 || 2 * shape.pairs() < shape.head_dim))
      launch(stream, launch_of_rows(shape.batch * shape.sequence, shape.row()), pass_kernel<T>, shape, from, to);
  });
}

}  // namespace

void rotary_forward(Stream stream, const RotaryShape& shape, ConstElements x, Elements y) {
  turn(stream, shape, 1.0F, x, y);
}

void rotary_backward(Stream stream, const RotaryShape& shape, ConstElements dy, Elements dx) {
  turn(stream, shape, -1.0F, dy, dx);
}

void split_groups(Stream stream, const GroupShape& shape, ConstElements x, Elements y) {
  if (shape.rows == 0) return;
  with_type(x.dtype(), [&]<class T>(T) {
    launch(stream, launch_of_rows(shape.rows, shape.all() * shape.head_dim), split_groups_kernel<T>, shape, x.as<T>(),
           y.as<T>());
  });
}

void join_groups(Stream stream, const GroupShape& shape, ConstElements x, Elements y) {
  if (shape.rows == 0) return;
  with_type(x.dtype(), [&]<class T>(T) {
    launch(stream, launch_of_rows(shape.rows, shape.all() * shape.head_dim), join_groups_kernel<T>, shape, x.as<T>(),
           y.as<T>());
  });
}

}  // namespace shard::cuda
