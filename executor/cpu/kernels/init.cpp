// Philox4x32-10 over blocks of 64 counters, and the distributions on top.
#include "executor/cpu/kernels/init.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/cpu/kernels/vector_math.h"

namespace shard::cpu {
namespace {

constexpr int kCounters = 64;                   // counters of a block
constexpr std::int64_t kBlock = 4 * kCounters;  // elements of a block
constexpr std::int64_t kBlocksPerTask = 64;

// Word w of counter i of a block.
struct Words {
  alignas(64) std::uint32_t w[4][kCounters];
};

// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011), table 2 and section 4.
SHARD_INLINE void philox(const RandomKey& key, std::uint32_t first_counter, Words& out) {
  const auto low = [](std::uint64_t x) SHARD_LAMBDA { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) SHARD_LAMBDA { return static_cast<std::uint32_t>(x >> 32); };
  const std::uint32_t index_low = low(key.index);
  const std::uint32_t index_high = high(key.index);
  const std::uint32_t stream = static_cast<std::uint32_t>(key.stream);
  const std::uint32_t seed_low = low(key.seed);
  const std::uint32_t seed_high = high(key.seed);
  SHARD_INDEPENDENT
  for (int i = 0; i < kCounters; ++i) {
    std::uint32_t c0 = first_counter + static_cast<std::uint32_t>(i);
    std::uint32_t c1 = index_low;
    std::uint32_t c2 = index_high;
    std::uint32_t c3 = stream;
    std::uint32_t k0 = seed_low;
    std::uint32_t k1 = seed_high;
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c0;
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c2;
      const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
      const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<std::uint32_t>(p1);
      c3 = static_cast<std::uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    out.w[0][i] = c0;
    out.w[1][i] = c1;
    out.w[2][i] = c2;
    out.w[3][i] = c3;
  }
}

// In (0, 1]: never 0, for the logarithm.
SHARD_INLINE float positive_unit(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8) + 1) * 0x1p-24F;
}
// In [0, 1).
SHARD_INLINE float unit(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24F;
}

SHARD_CLONES void normal_block(const RandomKey& key, std::uint32_t counter, float deviation, float* out) {
  Words words;
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
  Words words;
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
  Words words;
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
