// Rotary embedding: a block to a position, whose threads know their angle's sine and cosine and turn it in all heads.
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
  const std::int64_t half = shape.head_dim / 2;
  const std::uint32_t heads = static_cast<std::uint32_t>(shape.heads);
  const std::uint32_t turns = static_cast<std::uint32_t>(shape.batch) * heads;
  const float frequency = pairs.frequency[pair];
  for (std::int64_t s = blockIdx.x; s < shape.sequence; s += gridDim.x) {
    // As the CPU's: angle in fp32, its sine and cosine rounded to fp32.
    const AngleParts angle = angle_parts(static_cast<double>(static_cast<float>(s) * frequency));
    const float cosine = static_cast<float>(angle.cos);
    const float sine = direction * static_cast<float>(angle.sin);
    for (std::uint32_t i = slot; i < turns; i += slots) {
      const std::int64_t b = i / heads;
      const std::int64_t h = i % heads;
      const std::int64_t at = ((b * shape.sequence + s) * shape.heads + h) * shape.head_dim + pairs.first + pair;
      const float low = to_f32(x[at]);
      const float high = to_f32(x[at + half]);
      y[at] = from_f32<T>(low * cosine - high * sine);
      y[at + half] = from_f32<T>(high * cosine + low * sine);
    }
  }
}

[[nodiscard]] Pairs pairs_of(const RotaryShape& shape, std::int64_t first) {
  Pairs pairs{.first = first, .count = static_cast<std::uint32_t>(std::min(kPairs, shape.head_dim / 2 - first))};
  for (std::uint32_t i = 0; i < pairs.count; ++i) {
    const double exponent = static_cast<double>(2 * (first + i)) / static_cast<double>(shape.head_dim);
    pairs.frequency[i] = static_cast<float>(std::pow(static_cast<double>(shape.base), -exponent));
  }
  return pairs;
}

void turn(Stream stream, const RotaryShape& shape, float direction, ConstElements x, Elements y) {
  const std::int64_t turns = shape.batch * shape.heads;
  if (turns == 0 || shape.sequence == 0) return;
  with_type(x.dtype(), [&]<class T>(T) {
    for (std::int64_t first = 0; first < shape.head_dim / 2; first += kPairs) {
      const Pairs pairs = pairs_of(shape, first);
      const std::int64_t threads = std::min<std::int64_t>(kThreads, pairs.count * turns);
      launch(stream,
             {.blocks_x = static_cast<std::uint32_t>(shape.sequence), .threads = static_cast<std::uint32_t>(threads)},
             turn_kernel<T>, shape, pairs, direction, x.as<T>(), y.as<T>());
    }
  });
}

}  // namespace

void rotary_forward(Stream stream, const RotaryShape& shape, ConstElements x, Elements y) {
  turn(stream, shape, 1.0F, x, y);
}

void rotary_backward(Stream stream, const RotaryShape& shape, ConstElements dy, Elements dx) {
  turn(stream, shape, -1.0F, dy, dx);
}

}  // namespace shard::cuda
