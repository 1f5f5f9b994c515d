// Inputs that every rank can compute for every rank, and the tree sum written the slow way: level by level.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

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

}  // namespace shard::test
