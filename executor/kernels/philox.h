// Philox4x32-10 over blocks of 64 counters: what everything random is drawn from.
#pragma once

#include <cstdint>

#include "executor/kernels/random_key.h"
#include "executor/numeric/vectorise.h"

namespace shard {

inline constexpr int kPhiloxCounters = 64;                         ///< counters of a block
inline constexpr std::int64_t kPhiloxBlock = 4 * kPhiloxCounters;  ///< elements of a block

/// Word w of counter i of N: element 4 i + w.
template <int N>
struct PhiloxWordsOf {
  alignas(64) std::uint32_t w[4][N];
};
using PhiloxWords = PhiloxWordsOf<kPhiloxCounters>;

/// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011), table 2 and section 4.
template <int N>
SHARD_INLINE void philox(const RandomKey& key, std::uint32_t first_counter, PhiloxWordsOf<N>& out) {
  const auto low = [](std::uint64_t x) SHARD_LAMBDA { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) SHARD_LAMBDA { return static_cast<std::uint32_t>(x >> 32); };
  const std::uint32_t index_low = low(key.index);
  const std::uint32_t index_high = high(key.index);
  const std::uint32_t stream = static_cast<std::uint32_t>(key.stream) | key.row << 8;
  const std::uint32_t seed_low = low(key.seed);
  const std::uint32_t seed_high = high(key.seed);
  SHARD_INDEPENDENT
  for (int i = 0; i < N; ++i) {
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

}  // namespace shard
