// 16-bit floats and their exact conversions: widening loses nothing, narrowing rounds once, to nearest even.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "traces/base/dtype.h"

namespace shard {

/// bfloat16: the upper half of an IEEE binary32; 8 bits of exponent, 7 of fraction.
struct Bf16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(Bf16, Bf16) = default;  ///< of the bits
};
/// IEEE 754 binary16; 5 bits of exponent, 10 of fraction.
struct F16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(F16, F16) = default;  ///< of the bits
};

// Without branches or library calls, so that loops over them are vectorised, also inside functions cloned per
// instruction set; every step is an integer or exact IEEE operation, so the bits are the same wherever they run.
// NaN stays NaN, quiet, with its sign and the upper bits of its payload: the bits of x86's VCVTPS2PH and VCVTPH2PS.
#define SHARD_HALF [[nodiscard, gnu::always_inline]] constexpr

/// `condition` ? a : b, in arithmetic: a compiler may turn ?: into a branch, and the loop around it into scalars.
SHARD_HALF std::uint32_t select_bits(bool condition, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
  return b ^ ((a ^ b) & mask);
}

SHARD_HALF float to_f32(float value) {
  return value;
}

SHARD_HALF float to_f32(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

SHARD_HALF float to_f32(F16 value) {
  const std::uint32_t magnitude = value.bits & 0x7FFFU;
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  // Subnormals are multiples of 2^-24; the product is exact and normal in fp32.
  const auto small = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
  const std::uint32_t normal = (magnitude << 13) + (std::uint32_t{127 - 15} << 23);
  const std::uint32_t quiet = select_bits(magnitude > 0x7C00U, 0x00400000U, 0U);
  const std::uint32_t special = (magnitude << 13) | 0x7F800000U | quiet;
  const std::uint32_t finite = select_bits(magnitude < 0x0400U, small, normal);
  return std::bit_cast<float>(sign | select_bits(magnitude >= 0x7C00U, special, finite));
}

SHARD_HALF Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // A carry out of the fraction raises the exponent, at the top to infinity: just what rounding asks for.
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x0040U;
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return Bf16{static_cast<std::uint16_t>(select_bits(is_nan, quiet, rounded))};
}

SHARD_HALF F16 to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  // Below the normal range: next to 0.5 the unit of fp32 is 2^-24, so the addition rounds to multiples of it. What is
  // no subnormal is replaced by 0 first, which keeps signalling NaN out of the addition; its sum is not used.
  const std::uint32_t below = select_bits(magnitude < 0x38800000U, magnitude, 0U);
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(below) + 0.5F) - 0x3F000000U;
  // A carry out of the fraction raises the exponent, at the top to infinity.
  const std::uint32_t normal = (magnitude - (std::uint32_t{127 - 15} << 23) + 0x0FFFU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t quiet = 0x7E00U | ((magnitude >> 13) & 0x03FFU);
  const std::uint32_t huge = select_bits(magnitude > 0x7F800000U, quiet, 0x7C00U);
  const std::uint32_t finite = select_bits(magnitude < 0x38800000U, small, normal);
  const std::uint32_t bounded = select_bits(magnitude >= 0x47800000U, huge, finite);  // 2^16 and above
  return F16{static_cast<std::uint16_t>(sign | bounded)};
}

/// `value` rounded to T, one of float, Bf16, F16.
template <class T>
SHARD_HALF T from_f32(float value) = delete;
template <>
SHARD_HALF float from_f32<float>(float value) {
  return value;
}
template <>
SHARD_HALF Bf16 from_f32<Bf16>(float value) {
  return to_bf16(value);
}
template <>
SHARD_HALF F16 from_f32<F16>(float value) {
  return to_f16(value);
}

/// to_f32(from_f32<T>(value)), the fp32 value that is left after rounding to T, without going through 16 bits.
template <class T>
SHARD_HALF float rounded(float value) = delete;
template <>
SHARD_HALF float rounded<float>(float value) {
  return value;
}
template <>
SHARD_HALF float rounded<Bf16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t nearest = bits + 0x7FFFU + ((bits >> 16) & 1U);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return std::bit_cast<float>(select_bits(is_nan, bits | 0x00400000U, nearest) & 0xFFFF0000U);
}
template <>
SHARD_HALF float rounded<F16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t below = select_bits(magnitude < 0x38800000U, magnitude, 0U);
  const auto small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(below) + 0.5F - 0.5F);
  const std::uint32_t normal = (magnitude + 0x0FFFU + ((magnitude >> 13) & 1U)) & ~0x1FFFU;
  const std::uint32_t finite = select_bits(magnitude < 0x38800000U, small, normal);
  const std::uint32_t quiet = (magnitude | 0x00400000U) & ~0x1FFFU;
  const std::uint32_t huge = select_bits(magnitude > 0x7F800000U, quiet, 0x7F800000U);
  return std::bit_cast<float>((bits & 0x80000000U) | select_bits(normal >= 0x47800000U, huge, finite));
}

#undef SHARD_HALF

/// out[i] = in[i] as fp32, i < n, exactly. The buffers do not overlap.
void widen(const Bf16* in, float* out, std::int64_t n);
void widen(const F16* in, float* out, std::int64_t n);

/// out[i] = in[i] rounded, i < n. The buffers do not overlap.
void narrow(const float* in, Bf16* out, std::int64_t n);
void narrow(const float* in, F16* out, std::int64_t n);

/// out[i] = in[i] as fp32, i < n, exactly. `from` is f32 (a copy), bf16 or f16; `in` is aligned to its elements, and
/// nothing overlaps.
void widen(Dtype from, const std::byte* in, float* out, std::int64_t n);

/// out[i] = in[i] rounded to `to`, i < n; f32 (a copy), bf16 or f16. Buffers as above.
void narrow(Dtype to, const float* in, std::byte* out, std::int64_t n);

}  // namespace shard
