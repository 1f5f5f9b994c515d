// The device's rotary embedding against the reference, and the sine and cosine that it is made of against the
// library's.
#include <cmath>
#include <random>

#include "executor/kernels/angle.h"
#include "tests/cuda/support.h"

namespace shard::cuda::test {
namespace {

template <class T>
class CudaRotary : public testing::Test {};
TYPED_TEST_SUITE(CudaRotary, ElementTypes);

TYPED_TEST(CudaRotary, TurnsPairs) {
  using T = TypeParam;
  // The last: more pairs than one launch takes.
  const std::vector<RotaryShape> shapes = {
      {1, 1, 1, 2}, {2, 37, 3, 20}, {3, 5, 7, 64}, {1, 9, 40, 16, 500}, {2, 6, 2, 140}};
  for (const RotaryShape& s : shapes) {
    const std::int64_t n = s.batch * s.sequence * s.heads * s.head_dim;
    const Vec x = rounded<T>(random_values(n, 1));
    const auto turned = [&](double direction) {
      const auto u = [](std::int64_t v) { return static_cast<std::size_t>(v); };
      return ref::rotary(u(s.batch), u(s.sequence), u(s.heads), u(s.head_dim), static_cast<double>(s.base), direction,
                         x);
    };
    check<T>(
        [&](auto& c) {
          auto* from = c.in(x);
          auto* to = c.out(n);
          c.run([&] { rotary_forward(c.stream(), s, from, to); });
        },
        {turned(1)}, 4e-6);
    check<T>(
        [&](auto& c) {
          auto* d = c.in_out(x);
          c.run([&] { rotary_backward(c.stream(), s, d, d); });
        },
        {turned(-1)}, 4e-6);
  }
}

// Rounded to fp32 they are those of the library, which rounds nearly all of them correctly: over all magnitudes of an
// angle, and next to multiples of pi/2.
TEST(Angle, SineAndCosineAreThoseOfTheLibraryInFp32) {
  std::mt19937_64 engine(1);
  std::uniform_real_distribution<double> exponent(-20, 20);
  int differ = 0;
  const auto compare = [&](float angle) {
    const AngleParts parts = angle_parts(static_cast<double>(angle));
    const double sine = std::sin(static_cast<double>(angle)), cosine = std::cos(static_cast<double>(angle));
    ASSERT_NEAR(parts.sin, sine, 4e-16 * std::abs(sine)) << angle;
    ASSERT_NEAR(parts.cos, cosine, 4e-16 * std::abs(cosine)) << angle;
    differ += static_cast<float>(parts.sin) != static_cast<float>(sine);
    differ += static_cast<float>(parts.cos) != static_cast<float>(cosine);
  };
  compare(0);
  for (int i = 0; i < 1'000'000; ++i) compare(static_cast<float>(std::exp2(exponent(engine))));
  for (int k = 1; k < 600'000; k += 7) compare(static_cast<float>(k * M_PI_2));
  EXPECT_EQ(differ, 0);
}

}  // namespace
}  // namespace shard::cuda::test
