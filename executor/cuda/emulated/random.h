// Chance from a seed, the same everywhere.
#pragma once

#include <cstdint>

namespace shard::cuda::emulated {

/// splitmix64.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}
  [[gnu::always_inline]] constexpr std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  /// 0 <= result < n, n > 0.
  [[gnu::always_inline]] constexpr std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace shard::cuda::emulated
