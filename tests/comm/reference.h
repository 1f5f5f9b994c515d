// Inputs that every rank can compute for every rank, and the tree sum written the slow way: level by level.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/numeric/half.h"
#include "traces/base/dtype.h"
#include "traces/base/rank_group.h"

namespace shard::test {

/// What a test's buffers are filled with.
enum class Values {
  exact,   ///< small integers: any order of summation gives the same bits
  random,  ///< signs and magnitudes over 20 binades: another order gives other bits
};

/// Element `index` of rank `rank`'s input number `input`.
inline float value_of(Values values, int rank, std::int64_t index, int input) {
  std::uint64_t x = static_cast<std::uint64_t>(index) * 0x9E3779B97F4A7C15U +
                    static_cast<std::uint64_t>(rank) * 0xD1B54A32D192ED03U +
                    static_cast<std::uint64_t>(input) * 0x8CB92BA72F3D8DD7U + 1;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  x ^= x >> 31;
  if (values == Values::exact) return static_cast<float>(static_cast<int>(x % 2001) - 1000);
  const auto mantissa = static_cast<std::uint32_t>(x & 0x807FFFFFU);
  const auto exponent = static_cast<std::uint32_t>(117 + (x >> 40) % 20) << 23;
  return std::bit_cast<float>(mantissa | exponent);
}

/// Pairs neighbours, carries an odd one out up unchanged, until one is left. Overwrites `level`.
inline float tree_of(std::span<float> level) {
  std::size_t count = level.size();
  while (count > 1) {
    for (std::size_t i = 0; i + 1 < count; i += 2) level[i / 2] = level[i] + level[i + 1];
    if (count % 2 == 1) level[count / 2] = level[count - 1];
    count = (count + 1) / 2;
  }
  return level[0];
}

/// The sum over `world` <= 128 ranks of element `index` of input `input`.
inline float sum_of(Values values, int world, std::int64_t index, int input) {
  std::array<float, 128> leaves;
  for (int rank = 0; rank < world; ++rank)
    leaves[static_cast<std::size_t>(rank)] = value_of(values, rank, index, input);
  return tree_of(std::span(leaves).first(static_cast<std::size_t>(world)));
}

/// The bits of `value` rounded to `dtype`, one of the floats.
inline std::uint64_t bits_of(Dtype dtype, float value) {
  if (dtype == Dtype::bf16) return to_bf16(value).bits;
  if (dtype == Dtype::f16) return to_f16(value).bits;
  return std::bit_cast<std::uint32_t>(value);
}
/// The value of those bits.
inline float value_of_bits(Dtype dtype, std::uint64_t bits) {
  if (dtype == Dtype::bf16) return to_f32(Bf16{static_cast<std::uint16_t>(bits)});
  if (dtype == Dtype::f16) return to_f32(F16{static_cast<std::uint16_t>(bits)});
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

/// Element `index` of rank `rank`'s input number `input` as the bits of a `dtype`. Integers take all of their range.
inline std::uint64_t element_of(Dtype dtype, int rank, std::int64_t index, int input) {
  const float value = value_of(Values::random, rank, index, input);
  if (dtype != Dtype::i64 && dtype != Dtype::i32) return bits_of(dtype, value);
  const std::uint64_t wide = std::bit_cast<std::uint32_t>(value) * 0x9E3779B97F4A7C15U;
  return dtype == Dtype::i64 ? wide : wide >> 32;
}

/// The bits of the sum of element `index` over a group of up to 128 ranks: level by level, every node rounded.
inline std::uint64_t sum_of(Dtype dtype, RankGroup group, std::int64_t index, int input) {
  std::array<std::uint64_t, 128> level;
  for (int member = 0; member < group.count; ++member)
    level[static_cast<std::size_t>(member)] = element_of(dtype, group.rank_of(member), index, input);
  for (auto count = static_cast<std::size_t>(group.count); count > 1; count = (count + 1) / 2) {
    for (std::size_t i = 0; i + 1 < count; i += 2) {
      const std::uint64_t a = level[i];
      const std::uint64_t b = level[i + 1];
      level[i / 2] = dtype == Dtype::i64 ? a + b : bits_of(dtype, value_of_bits(dtype, a) + value_of_bits(dtype, b));
    }
    if (count % 2 == 1) level[count / 2] = level[count - 1];
  }
  return level[0];
}

}  // namespace shard::test
