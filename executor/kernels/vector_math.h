// exp, sigmoid, log, the normal distribution, sine and cosine in fp32 as branch-free scalar code that the compiler
// vectorises.
#pragma once

#include <bit>
#include <cstdint>

#include "executor/numeric/vectorise.h"

namespace shard {

/// e^x, at most 1.5 ulp off for normal results. Below ln 2^-126 it is 0 (no subnormal results: they cost assists and
/// carry nothing), above the largest float infinity; NaN stays NaN.
/// Reduction by Cody and Waite, polynomial of degree 7 as in Cephes expf.
SHARD_INLINE float exp_f32(float x) {
  constexpr float kSmallest = -87.3365447F;  // ln 2^-126
  constexpr float kRound = 12582912.0F;      // 1.5 * 2^23: adding it rounds to an integer
  const float high = x > 89.0F ? 89.0F : x;
  const float c = high < kSmallest ? kSmallest : high;
  const float biased = c * 1.44269504F + kRound;
  const float k = biased - kRound;
  const float r = (c - k * 0.693359375F) - k * -2.12194440e-4F;  // the first product is exact
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float y = (p * (r * r) + r) + 1.0F;
  // 2^k in two factors, for k = 128.
  const std::int32_t n = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(biased) - 0x4b400000U);
  const std::int32_t half = n >> 1;
  const float s0 = std::bit_cast<float>(static_cast<std::uint32_t>(half + 127) << 23);
  const float s1 = std::bit_cast<float>(static_cast<std::uint32_t>(n - half + 127) << 23);
  const float result = y * s0 * s1;
  return x < kSmallest ? 0.0F : result;
}

/// 1 / (1 + e^-x).
SHARD_INLINE float sigmoid_f32(float x) {
  return 1.0F / (1.0F + exp_f32(-x));
}

/// A sigmoid s and its slope s (1 - s), without the cancellation of 1 - s.
struct Sigmoid {
  float value;
  float slope;
};
SHARD_INLINE Sigmoid sigmoid_and_slope_f32(float x) {
  const float e = exp_f32(-x);
  const float s = 1.0F / (1.0F + e);
  const float rest = e < 1e38F ? e * s : 1.0F;  // not inf * 0
  return {s, s * rest};
}

/// ln x for normal positive x, at most 1.5 ulp off. Polynomial of Cephes logf.
SHARD_INLINE float log_f32(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const std::uint32_t shifted = bits - 0x3f3504f3U;
  const float e = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23);
  const float m = std::bit_cast<float>((shifted & 0x007fffffU) + 0x3f3504f3U) - 1.0F;
  const float z = m * m;
  float p = 7.0376836292e-2F;
  p = p * m - 1.1514610310e-1F;
  p = p * m + 1.1676998740e-1F;
  p = p * m - 1.2420140846e-1F;
  p = p * m + 1.4249322787e-1F;
  p = p * m - 1.6668057665e-1F;
  p = p * m + 2.0000714765e-1F;
  p = p * m - 2.4999993993e-1F;
  p = p * m + 3.3333331174e-1F;
  const float y = (p * m) * z + e * -2.12194440e-4F - 0.5F * z;
  return (m + y) + e * 0.693359375F;
}

/// The normal distribution's function and its density, 1e-6 of each off where the density is not below 1e-5, 3e-7 of 1
/// anywhere.
struct Normal {
  float probability;
  float density;
};
/// The tail beyond |x| is density(x) R(x), R being Mills' ratio. R(x) sqrt(2 pi) / t is a polynomial in t = 1 / (1 +
/// 0.3 |x|), fitted for this project by least squares, reweighted towards the largest relative error, on 4000 Chebyshev
/// nodes of t for 0 <= |x| <= 14: 4e-9 off before rounding.
SHARD_INLINE Normal normal_f32(float x) {
  const float a = x < 0.0F ? -x : x;
  const float e = exp_f32(-0.5F * a * a);
  const float t = 1.0F / (1.0F + 0.3F * a);
  float p = -0.0206136797F;
  p = p * t + 0.112380356F;
  p = p * t - 0.228078172F;
  p = p * t + 0.191595733F;
  p = p * t - 0.079258807F;
  p = p * t + 0.0960638449F;
  p = p * t + 0.0784235597F;
  p = p * t + 0.110227741F;
  p = p * t + 0.119572796F;
  p = p * t + 0.119686633F;
  const float tail = e * (t * p);
  return {x < 0.0F ? tail : 1.0F - tail, e * 0.398942280F};
}

struct SinCos {
  float sin;
  float cos;
};

/// Sine and cosine of 2 pi turns, turns in [0, 1). Taylor polynomials on an eighth turn either side.
SHARD_INLINE SinCos sincos_turns(float turns) {
  constexpr float kRound = 12582912.0F;
  const float quarters = turns * 4.0F;
  const float biased = quarters + kRound;
  const std::uint32_t quadrant = std::bit_cast<std::uint32_t>(biased);
  const float a = (quarters - (biased - kRound)) * 1.57079633F;
  const float z = a * a;
  const float s = a + a * z * (-1.6666667e-1F + z * (8.3333338e-3F + z * (-1.9841270e-4F + z * 2.7557319e-6F)));
  const float c = 1.0F - 0.5F * z + z * z * (4.1666668e-2F + z * (-1.3888889e-3F + z * (2.4801587e-5F)));
  const float sine = (quadrant & 1U) != 0 ? c : s;
  const float cosine = (quadrant & 1U) != 0 ? s : c;
  const std::uint32_t sine_sign = (quadrant & 2U) << 30;
  const std::uint32_t cosine_sign = ((quadrant + 1U) & 2U) << 30;
  return {std::bit_cast<float>(std::bit_cast<std::uint32_t>(sine) ^ sine_sign),
          std::bit_cast<float>(std::bit_cast<std::uint32_t>(cosine) ^ cosine_sign)};
}

}  // namespace shard
