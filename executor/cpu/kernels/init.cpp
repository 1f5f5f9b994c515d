// Distributions on top of Philox4x32-10.
#include "executor/cpu/kernels/init.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/kernels/philox.h"
#include "executor/kernels/vector_math.h"

namespace shard::cpu {
namespace {

constexpr int kCounters = kPhiloxCounters;
constexpr std::int64_t kBlock = kPhiloxBlock;
constexpr std::int64_t kBlocksPerTask = 64;

// In (0, 1]: never 0, for the logarithm.
SHARD_INLINE float positive_unit(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8) + 1) * 0x1p-24F;
}
// In [0, 1).
SHARD_INLINE float unit(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24F;
}

SHARD_CLONES void normal_block(const RandomKey& key, std::uint32_t counter, float deviation, float* out) {
  PhiloxWords words;
  philox(key, counter, words);
  for (int pair = 0; pair < 2; ++pair) {
    const std::uint32_t* radius_word = words.w[2 * pair];
    const std::uint32_t* angle_word = words.w[2 * pair + 1];
    SHARD_INDEPENDENT
    for (int i = 0; i < kCounters; ++i) {
      const float radius = std::sqrt(-2.0F * log_f32(positive_unit(radius_word[i]))) * deviation;
      const SinCos angle = sincos_turns(unit(angle_word[i]));
      out[4 * i + 2 * pair] = radius * angle.cos;
      out[4 * i + 2 * pair + 1] = radius * angle.sin;
    }
  }
}

SHARD_CLONES void uniform_block(const RandomKey& key, std::uint32_t counter, float half_width, float* out) {
  PhiloxWords words;
  philox(key, counter, words);
  for (int w = 0; w < 4; ++w) {
    SHARD_INDEPENDENT
    for (int i = 0; i < kCounters; ++i) {
      const std::int32_t centred = static_cast<std::int32_t>(words.w[w][i] >> 8) - (1 << 23);
      out[4 * i + w] = static_cast<float>(centred) * 0x1p-23F * half_width;
    }
  }
}

SHARD_CLONES void integer_block(const RandomKey& key, std::uint32_t counter, std::uint32_t bound, std::int32_t* out) {
  PhiloxWords words;
  philox(key, counter, words);
  for (int w = 0; w < 4; ++w) {
    SHARD_INDEPENDENT
    for (int i = 0; i < kCounters; ++i) {
      out[4 * i + w] = static_cast<std::int32_t>((std::uint64_t{words.w[w][i]} * bound) >> 32);
    }
  }
}

// Whole blocks of the key's sequence, of which [first, first + n) is kept: so a cut never changes how a block is made.
template <class T, class Block>
void generate(ThreadPool& pool, std::int64_t first, std::int64_t n, T* out, const Block& make) {
  assert(first >= 0 && first + n <= std::int64_t{1} << 34);
  if (n <= 0) return;
  const std::int64_t begin = first / kBlock;
  const std::int64_t end = ceil_div(first + n, kBlock);
  run_ranges(
      pool, end - begin,
      [&](std::int64_t block, std::int64_t count) {
        alignas(64) T values[kBlock];
        for (std::int64_t b = begin + block; b < begin + block + count; ++b) {
          make(static_cast<std::uint32_t>(b * kCounters), values);
          const std::int64_t from = std::max(first, b * kBlock);
          const std::int64_t to = std::min(first + n, (b + 1) * kBlock);
          std::memcpy(out + (from - first), values + (from - b * kBlock),
                      static_cast<std::size_t>(to - from) * sizeof(T));
        }
      },
      kBlocksPerTask);
}

}  // namespace

void random_normal(ThreadPool& pool, const RandomKey& key, std::int64_t first, std::int64_t n, float deviation,
                   float* out) {
  generate(pool, first, n, out,
           [&](std::uint32_t counter, float* values) { normal_block(key, counter, deviation, values); });
}

void random_uniform(ThreadPool& pool, const RandomKey& key, std::int64_t first, std::int64_t n, float half_width,
                    float* out) {
  generate(pool, first, n, out,
           [&](std::uint32_t counter, float* values) { uniform_block(key, counter, half_width, values); });
}

void random_integers(ThreadPool& pool, const RandomKey& key, std::int64_t first, std::int64_t n, std::int32_t bound,
                     std::int32_t* out) {
  generate(pool, first, n, out, [&](std::uint32_t counter, std::int32_t* values) {
    integer_block(key, counter, static_cast<std::uint32_t>(bound), values);
  });
}

}  // namespace shard::cpu
