// A superaccumulator: squares are summed per exponent as integers, then moved to the limbs.
#include "executor/cpu/kernels/exact_sum.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>

#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "sim/ir/control_block.h"

namespace shard::cpu {
namespace {

constexpr std::uint32_t kExponents = 256;
constexpr std::uint32_t kNotFinite = 255;  // the exponent of infinity and NaN
// Neighbours often have the same exponent: tables of their own, so that one sum does not wait for the other.
constexpr int kTables = 4;
constexpr std::uint64_t kDigit = 0xFFFFFFFFU;

// Squares of a piece of at most 16384 elements, by exponent: integers of 48 bits, so sums of at most 62.
struct Bins {
  std::uint64_t sum[kTables][kExponents] = {};
};

template <class T>
void add_squares(std::int64_t n, const T* x, Bins& bins) {
  const auto add = [&](int table, T value) SHARD_LAMBDA {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(to_f32(value)) & 0x7FFFFFFFU;
    const std::uint32_t exponent = bits >> 23;
    const std::uint64_t whole = (bits & 0x7FFFFFU) | (exponent != 0 ? 0x800000U : 0U);
    bins.sum[table][exponent] += whole * whole;
  };
  std::int64_t i = 0;
  for (; i + kTables <= n; i += kTables)
    for (int table = 0; table < kTables; ++table) add(table, x[i + table]);
  for (; i < n; ++i) add(0, x[i]);
}

// limbs += value 2^(position - 298), digit by digit.
void add_at(std::uint64_t value, std::uint32_t position, std::uint64_t (&limbs)[GradientFacts::kLimbs]) {
  const std::uint32_t limb = position / 32;
  const std::uint32_t shift = position % 32;
  const std::uint64_t low = (value & kDigit) << shift;
  const std::uint64_t high = (value >> 32) << shift;
  limbs[limb] += low & kDigit;
  limbs[limb + 1] += (low >> 32) + (high & kDigit);
  limbs[limb + 2] += high >> 32;
}

// Every limb but the last below 2^32.
void carry(std::uint64_t (&limbs)[GradientFacts::kLimbs]) {
  for (int i = 0; i + 1 < GradientFacts::kLimbs; ++i) {
    limbs[i + 1] += limbs[i] >> 32;
    limbs[i] &= kDigit;
  }
}

void atomic_add(std::int64_t& word, std::int64_t value) {
  if (value != 0) std::atomic_ref(word).fetch_add(value, std::memory_order_relaxed);
}

template <class T>
void note_nonfinite(std::int64_t n, const T* x, std::int64_t first_key, GradientFacts& facts) {
  std::int64_t count = 0;
  std::int64_t first = GradientFacts::kNone;
  for (std::int64_t i = n - 1; i >= 0; --i) {
    if ((std::bit_cast<std::uint32_t>(to_f32(x[i])) & 0x7F800000U) != 0x7F800000U) continue;
    ++count;
    first = first_key + i;
  }
  atomic_add(facts.nonfinite, count);
  std::atomic_ref smallest(facts.first_nonfinite);
  for (std::int64_t now = smallest.load(std::memory_order_relaxed);
       first < now && !smallest.compare_exchange_weak(now, first, std::memory_order_relaxed);) {
  }
}

template <class T>
void add_piece(std::int64_t n, const T* x, std::int64_t first_key, GradientFacts& facts) {
  Bins bins;
  add_squares<T>(n, x, bins);
  std::uint64_t limbs[GradientFacts::kLimbs] = {};
  for (std::uint32_t exponent = 0; exponent < kNotFinite; ++exponent) {
    std::uint64_t sum = 0;
    for (const auto& table : bins.sum) sum += table[exponent];
    // A float is whole 2^(max(exponent, 1) - 150); the smallest square is at position 0.
    if (sum != 0) add_at(sum, 2 * (std::max(exponent, 1U) - 1), limbs);
  }
  carry(limbs);
  for (int i = 0; i < GradientFacts::kLimbs; ++i) atomic_add(facts.limbs[i], static_cast<std::int64_t>(limbs[i]));
  std::uint64_t nonfinite = 0;
  for (const auto& table : bins.sum) nonfinite |= table[kNotFinite];
  if (nonfinite != 0) note_nonfinite<T>(n, x, first_key, facts);
}

}  // namespace

void square_sum_add(ThreadPool& pool, ConstElements x, std::int64_t n, std::int64_t first_key, GradientFacts& facts) {
  static_assert(kElementwiseTask == 16384, "what the header says of pieces");
  with_type(x.dtype(), [&]<class T>(T) {
    const T* xt = x.as<T>();
    run_ranges(pool, n, [&](std::int64_t i, std::int64_t count) { add_piece<T>(count, xt + i, first_key + i, facts); });
  });
}

void combine(const GradientFacts& other, GradientFacts& into) {
  for (int i = 0; i < GradientFacts::kLimbs; ++i) into.limbs[i] += other.limbs[i];
  into.nonfinite += other.nonfinite;
  into.first_nonfinite = std::min(into.first_nonfinite, other.first_nonfinite);
}

double square_sum(const GradientFacts& facts) {
  std::uint64_t limbs[GradientFacts::kLimbs];
  for (int i = 0; i < GradientFacts::kLimbs; ++i) limbs[i] = static_cast<std::uint64_t>(facts.limbs[i]);
  carry(limbs);
  int top = GradientFacts::kLimbs - 1;
  while (top > 0 && limbs[top] == 0) --top;
  // The upper 64 bits of the number from its highest bit on, the last of them also standing for all below.
  const int width = 64 - std::countl_zero(limbs[top]);
  std::uint64_t upper = width == 0 ? 0 : limbs[top] << (64 - width);
  int free = 64 - width;
  int digit = top - 1;
  bool rest = false;
  for (; digit >= 0; --digit) {
    if (free >= 32) {
      upper |= limbs[digit] << (free - 32);
      free -= 32;
    } else {
      upper |= limbs[digit] >> (32 - free);
      rest = rest || (limbs[digit] & (kDigit >> free)) != 0;
      free = 0;
    }
  }
  if (rest) upper |= 1;
  // 64 bits round to 53 here, once: to nearest, ties to even. The scaling is exact: results are far from the ends of
  // the range of doubles.
  return std::ldexp(static_cast<double>(upper), 32 * top + width - 64 - 298);
}

}  // namespace shard::cpu
