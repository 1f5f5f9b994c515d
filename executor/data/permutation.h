// A random order of N things that is computed, not stored: place k of it on demand.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>

#include "executor/kernels/philox.h"

namespace shard::data {

/// A bijection of [0, n) for each (seed, epoch): a Feistel network of six rounds over the next even number of bits,
/// walked until it ends below n (Black, Rogaway: Ciphers with arbitrary finite domains, CT-RSA 2002, section 4), four
/// walks at most in the mean. Round functions are words of Philox.
class Permutation {
 public:
  /// 0 < n <= 2^62.
  Permutation(std::uint64_t seed, std::uint64_t epoch, std::int64_t n)
      : key_{seed, RandomStream::order, epoch}, n_(static_cast<std::uint64_t>(n)) {
    assert(n > 0);
    half_ = static_cast<int>((std::bit_width(n_ - 1) + 1) / 2);
  }

  /// 0 <= k < n.
  [[nodiscard]] std::int64_t operator()(std::int64_t k) const {
    auto at = static_cast<std::uint64_t>(k);
    if (half_ == 0) return 0;
    do at = walk(at);
    while (at >= n_);
    return static_cast<std::int64_t>(at);
  }

 private:
  [[nodiscard]] std::uint64_t walk(std::uint64_t at) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_) - 1;
    std::uint64_t left = at >> half_;
    std::uint64_t right = at & mask;
    for (std::uint32_t round = 0; round < 6; ++round) {
      RandomKey key = key_;
      key.row = round;
      PhiloxWordsOf<1> words;
      philox(key, static_cast<std::uint32_t>(right), words);  // half_ <= 31: right fits
      const std::uint64_t mixed = left ^ (words.w[0][0] & mask);
      left = right;
      right = mixed;
    }
    return left << half_ | right;
  }

  RandomKey key_;
  std::uint64_t n_;
  int half_ = 0;  ///< bits of either half
};

}  // namespace shard::data
