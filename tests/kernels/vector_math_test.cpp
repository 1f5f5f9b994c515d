// exp, log, sine and cosine: distance from the true value, and the ends of their ranges.
#include "executor/kernels/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shard::cpu::test {
namespace {

// Distance in units of the last place of the true value's fp32 neighbourhood.
double ulps(float actual, double expected) {
  const float rounded = static_cast<float>(expected);
  const double ulp =
      static_cast<double>(std::nextafter(std::abs(rounded), INFINITY)) - std::abs(static_cast<double>(rounded));
  return std::abs(static_cast<double>(actual) - expected) / ulp;
}

TEST(VectorMath, ExpIsWithinOneAndAHalfUlp) {
  double worst = 0;
  for (double x = -87.3; x < 88.7; x += 0.000371) {
    const float v = static_cast<float>(x);
    worst = std::max(worst, ulps(exp_f32(v), std::exp(static_cast<double>(v))));
  }
  EXPECT_LT(worst, 1.5);
}

TEST(VectorMath, ExpAtTheEndsOfItsRange) {
  EXPECT_EQ(exp_f32(0.0F), 1.0F);
  EXPECT_EQ(exp_f32(-0.0F), 1.0F);
  EXPECT_EQ(exp_f32(-87.4F), 0.0F);
  EXPECT_EQ(exp_f32(-INFINITY), 0.0F);
  EXPECT_EQ(exp_f32(88.8F), INFINITY);
  EXPECT_EQ(exp_f32(INFINITY), INFINITY);
  EXPECT_LT(ulps(exp_f32(88.72F), std::exp(static_cast<double>(88.72F))), 1.5);
  EXPECT_TRUE(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VectorMath, LogIsWithinOneAndAHalfUlp) {
  double worst = 0;
  for (std::int32_t i = 1; i <= 1 << 24; i += 37) {
    const float v = static_cast<float>(i) * 0x1p-24F;
    if (v == 1.0F) continue;
    worst = std::max(worst, ulps(log_f32(v), std::log(static_cast<double>(v))));
  }
  EXPECT_LT(worst, 1.5);
  EXPECT_EQ(log_f32(1.0F), 0.0F);
}

TEST(VectorMath, SineAndCosineOfTurns) {
  double worst = 0;
  for (std::int32_t i = 0; i < 1 << 24; i += 41) {
    const float v = static_cast<float>(i) * 0x1p-24F;
    const SinCos r = sincos_turns(v);
    worst = std::max(worst, std::abs(static_cast<double>(r.sin) - std::sin(2 * M_PI * static_cast<double>(v))));
    worst = std::max(worst, std::abs(static_cast<double>(r.cos) - std::cos(2 * M_PI * static_cast<double>(v))));
  }
  EXPECT_LT(worst, 1.2e-7);
}

}  // namespace
}  // namespace shard::cpu::test
