// Sine and cosine of an angle in double, for every device: plain IEEE steps, so the same bits everywhere.
#pragma once

#include <bit>
#include <cstdint>

#include "executor/numeric/vectorise.h"

namespace shard {

struct AngleParts {
  double sin;
  double cos;
};

/// Of `angle` radians, 0 <= angle < 2^20: at most 1 ulp off. What remains beside the nearest multiple of pi/2, which is
/// taken off in three parts (the first two of 33 bits, whose multiples are exact), goes through the polynomials of
/// fdlibm's k_sin.c and k_cos.c (Sun Microsystems, 1993).
SHARD_INLINE AngleParts angle_parts(double angle) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double biased = angle * 6.36619772367581382433e-01 + kRound;
  const double k = biased - kRound;
  const double r =
      ((angle - k * 1.57079632673412561417) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;
  const double z = r * r;
  double p = 1.58969099521155010221e-10;
  p = p * z - 2.50507602534068634195e-08;
  p = p * z + 2.75573137070700676789e-06;
  p = p * z - 1.98412698298579493134e-04;
  p = p * z + 8.33333333332248946124e-03;
  p = p * z - 1.66666666666666324348e-01;
  const double s = r + r * z * p;
  double q = -1.13596475577881948265e-11;
  q = q * z + 2.08757232129817482790e-09;
  q = q * z - 2.75573143513906633035e-07;
  q = q * z + 2.48015872894767294178e-05;
  q = q * z - 1.38888888888741095749e-03;
  q = q * z + 4.16666666666666019037e-02;
  const double c = (1.0 - 0.5 * z) + z * z * q;
  const auto quadrant = std::bit_cast<std::uint64_t>(biased);
  const double sine = (quadrant & 1U) != 0 ? c : s;
  const double cosine = (quadrant & 1U) != 0 ? s : c;
  return {(quadrant & 2U) != 0 ? -sine : sine, ((quadrant + 1U) & 2U) != 0 ? -cosine : cosine};
}

}  // namespace shard
