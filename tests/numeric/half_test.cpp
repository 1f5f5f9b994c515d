// Are the conversions between fp32 and the 16-bit floats exact, rounded to nearest even, for every kind of number?
#include "executor/numeric/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace shard {
namespace {

/// A 16-bit format by its definition: IEEE 754 section 3.4.
struct Format {
  int fraction_bits;
  int bias;
  std::uint32_t top_exponent;  ///< of infinity and NaN
};
constexpr Format kBf16{7, 127, 255};
constexpr Format kF16{10, 15, 31};

/// The value of finite bits, computed the slow way.
double value_of(Format format, std::uint32_t bits) {
  const std::uint32_t fraction = bits & ((1U << format.fraction_bits) - 1);
  const auto exponent = static_cast<int>((bits & 0x7FFFU) >> format.fraction_bits);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - format.bias - format.fraction_bits)
                                         : std::ldexp(fraction + (1U << format.fraction_bits),
                                                      exponent - format.bias - format.fraction_bits);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

bool is_nan(Format format, std::uint32_t bits) {
  return (bits & 0x7FFFU) > format.top_exponent << format.fraction_bits;
}

/// Bits of `value` rounded to nearest, ties to even, the slow way: scaled so that a unit of the format is 1.
std::uint32_t round_to(Format format, float value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0U;
  const std::uint32_t infinity = format.top_exponent << format.fraction_bits;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0.0F) return sign;
  const double magnitude = std::fabs(static_cast<double>(value));
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  const double units = std::ldexp(magnitude, format.fraction_bits - exponent);  // exact
  double whole = std::floor(units);
  const double rest = units - whole;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) == 1.0)) whole += 1.0;
  // Units of a normal number begin at 2^fraction_bits, which is also what a carry out of the subnormals reaches.
  const double encoded = whole + std::ldexp(exponent + format.bias - 1, format.fraction_bits);
  return sign | std::min(static_cast<std::uint32_t>(encoded), infinity);
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

void expect_narrowed(std::uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  const std::uint32_t bf16 = to_bf16(value).bits;
  const std::uint32_t f16 = to_f16(value).bits;
  ASSERT_EQ(bits_of(rounded<Bf16>(value)), bits_of(to_f32(to_bf16(value)))) << std::hex << bits;
  ASSERT_EQ(bits_of(rounded<F16>(value)), bits_of(to_f32(to_f16(value)))) << std::hex << bits;
  if (std::isnan(value)) {
    // Quiet, of the same sign, with what fits of the payload.
    ASSERT_EQ(bf16, (bits >> 16) | 0x0040U) << std::hex << bits;
    ASSERT_EQ(f16, ((bits >> 16) & 0x8000U) | 0x7E00U | ((bits >> 13) & 0x03FFU)) << std::hex << bits;
    return;
  }
  ASSERT_EQ(bf16, round_to(kBf16, value)) << std::hex << bits;
  ASSERT_EQ(f16, round_to(kF16, value)) << std::hex << bits;
}

TEST(Half, EveryPatternWidensExactly) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float bf16 = to_f32(Bf16{static_cast<std::uint16_t>(bits)});
    const float f16 = to_f32(F16{static_cast<std::uint16_t>(bits)});
    ASSERT_EQ(bits_of(bf16), bits << 16);
    if (is_nan(kF16, bits)) {
      ASSERT_EQ(bits_of(f16), ((bits & 0x8000U) << 16) | 0x7FC00000U | ((bits & 0x03FFU) << 13)) << std::hex << bits;
      continue;
    }
    const bool infinite = (bits & 0x7FFFU) == 0x7C00U;
    const double expected =
        infinite ? std::copysign(std::numeric_limits<double>::infinity(), (bits & 0x8000U) != 0 ? -1.0 : 1.0)
                 : value_of(kF16, bits);
    ASSERT_EQ(static_cast<double>(f16), expected) << std::hex << bits;
    ASSERT_EQ(std::signbit(f16), (bits & 0x8000U) != 0) << std::hex << bits;
  }
}

TEST(Half, EveryPatternComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const auto quiet_bf16 = static_cast<std::uint16_t>(is_nan(kBf16, bits) ? bits | 0x0040U : bits);
    const auto quiet_f16 = static_cast<std::uint16_t>(is_nan(kF16, bits) ? bits | 0x0200U : bits);
    ASSERT_EQ(to_bf16(to_f32(Bf16{half})).bits, quiet_bf16);
    ASSERT_EQ(to_f16(to_f32(F16{half})).bits, quiet_f16);
  }
}

/// Every 16-bit value, every midpoint between two of them, and their nearest neighbours in fp32.
TEST(Half, NarrowsToNearestEvenAroundEveryValueAndMidpoint) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const std::uint32_t bf16 = bits << 16;
    const std::uint32_t f16 = bits_of(to_f32(F16{static_cast<std::uint16_t>(bits)}));
    // Half a unit of f16 as fp32 bits; among its subnormals units are wider, so each power of two there is tried.
    for (const std::uint32_t delta : {0xFFFFFFFFU, 0U, 1U}) {
      expect_narrowed(bf16 + delta);
      expect_narrowed(bf16 + 0x8000U + delta);
      for (std::uint32_t half_unit = 0x1000U; half_unit <= 0x800000U; half_unit <<= 1)
        expect_narrowed(f16 + half_unit + delta);
    }
    if (HasFatalFailure()) return;
  }
}

TEST(Half, NarrowsToNearestEvenAtRandom) {
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    expect_narrowed(static_cast<std::uint32_t>(random()));
    // Values that f16 can hold are few among all patterns.
    const auto exponent = static_cast<std::uint32_t>(100 + random() % 45) << 23;
    expect_narrowed(exponent | (static_cast<std::uint32_t>(random()) & 0x807FFFFFU));
    if (HasFatalFailure()) return;
  }
}

TEST(Half, KnownNumbers) {
  static_assert(to_f16(1.0F).bits == 0x3C00 && to_bf16(1.0F).bits == 0x3F80);
  static_assert(to_f16(65504.0F).bits == 0x7BFF && to_f16(65519.996F).bits == 0x7BFF);
  static_assert(to_f16(65520.0F).bits == 0x7C00);
  static_assert(to_f16(0x1p-24F).bits == 1 && to_f16(0x1p-25F).bits == 0 && to_f16(0x1.8p-25F).bits == 1);
  static_assert(to_bf16(1.00390625F).bits == 0x3F80 && to_bf16(1.01171875F).bits == 0x3F82);  // ties
  static_assert(to_f16(-0.0F).bits == 0x8000 && to_bf16(-0.0F).bits == 0x8000);
  static_assert(from_f32<F16>(0.5F) == F16{0x3800} && from_f32<float>(0.5F) == 0.5F);
}

/// Whatever instructions the machine has: body and tail of the vector loops give the bits of the scalar functions.
TEST(Half, BulkAgreesWithScalars) {
  std::mt19937 random(2);
  std::vector<float> floats(70'001);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const auto any = static_cast<std::uint32_t>(random());
    floats[i] = std::bit_cast<float>(i % 2 == 0 ? any : (any & 0x807FFFFFU) | (100 + any % 45) << 23);
  }
  std::vector<std::uint16_t> halves(floats.size());
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);  // all patterns
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{33}, floats.size()}) {
    const auto count = static_cast<std::int64_t>(n);
    std::vector<std::uint16_t> narrowed(n);
    std::vector<float> widened(n);
    narrow(Dtype::bf16, floats.data(), reinterpret_cast<std::byte*>(narrowed.data()), count);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(narrowed[i], to_bf16(floats[i]).bits);
    narrow(Dtype::f16, floats.data(), reinterpret_cast<std::byte*>(narrowed.data()), count);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(narrowed[i], to_f16(floats[i]).bits);
    const auto* const in = reinterpret_cast<const std::byte*>(halves.data());
    widen(Dtype::bf16, in, widened.data(), count);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(bits_of(widened[i]), bits_of(to_f32(Bf16{halves[i]})));
    widen(Dtype::f16, in, widened.data(), count);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(bits_of(widened[i]), bits_of(to_f32(F16{halves[i]})));
    widen(Dtype::f32, reinterpret_cast<const std::byte*>(floats.data()), widened.data(), count);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(bits_of(widened[i]), bits_of(floats[i]));
  }
}

}  // namespace
}  // namespace shard
