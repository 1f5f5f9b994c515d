// Elementwise operators and activations against the reference, in place and not, over sizes around vectors and tasks.
#include "executor/cpu/kernels/elementwise.h"

#include "executor/cpu/kernels/activation.h"
#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

class ElementwiseTest : public testing::TestWithParam<std::int64_t> {
 protected:
  const std::int64_t n = GetParam();
  const Vec a = random_values(n, 1, 3);
  const Vec b = random_values(n, 2, 3);
  const Vec d = random_values(n, 3);

  template <class F>
  Vec each(F f) const {
    Vec y(a.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = f(a[i], b[i], d[i]);
    return y;
  }
};

TEST_P(ElementwiseTest, Sums) {
  const Vec expected = sum(a, b);
  check([&](Call& call) { add(call.pool, n, call.in(a), call.in(b), call.out(n)); }, {expected}, 1e-7);
  check([&](Call& call) { add_into(call.pool, n, call.in(b), call.in_out(a)); }, {expected}, 1e-7);
}

TEST_P(ElementwiseTest, ScaleFillCopy) {
  check([&](Call& call) { scale(call.pool, n, 0.25F, call.in(a), call.out(n)); },
        {each([](double x, double, double) { return x / 4; })}, 0);
  check([&](Call& call) { zero(call.pool, n, call.out(n)); }, {Vec(a.size(), 0.0)}, 0);
  check([&](Call& call) { fill(call.pool, n, 1.5F, call.out(n)); }, {Vec(a.size(), 1.5)}, 0);
  check([&](Call& call) { convert_copy(call.pool, n, call.in(a), call.out(n)); }, {a}, 0);
}

TEST_P(ElementwiseTest, Gelu) {
  const Vec y = each([](double x, double, double) { return ref::gelu(x); });
  const Vec dx = each([](double x, double, double g) { return g * ref::gelu_slope(x); });
  check([&](Call& call) { gelu_forward(call.pool, n, call.in(a), call.out(n)); }, {y}, 2e-7);
  check([&](Call& call) { gelu_backward(call.pool, n, call.in(a), call.in(d), call.out(n)); }, {dx}, 3e-7);
  check(
      [&](Call& call) {
        float* g = call.in_out(d);
        gelu_backward(call.pool, n, call.in(a), g, g);
      },
      {dx}, 3e-7);
}

TEST_P(ElementwiseTest, Swiglu) {
  const Vec y = each([](double x, double u, double) { return ref::swiglu(x, u); });
  const Vec dgate = each([](double x, double u, double g) { return g * ref::swiglu_gate_slope(x, u); });
  const Vec dup = each([](double x, double, double g) { return g * ref::swiglu(x, 1); });
  check([&](Call& call) { swiglu_forward(call.pool, n, call.in(a), call.in(b), call.out(n)); }, {y}, 3e-7);
  check(
      [&](Call& call) {
        float* gate = call.in_out(d);  // over dy
        float* up = call.in_out(b);    // over up
        swiglu_backward(call.pool, n, call.in(a), up, gate, gate, up);
      },
      {dgate, dup}, 3e-7);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ElementwiseTest, testing::Values(1, 15, 16, 33, 1000, 40001));

// Far from zero gelu is x or 0 and its slope 1 or 0: nothing overflows on the way.
TEST(Activation, LargeArguments) {
  ThreadPool pool(1);
  const float x[] = {-1e18F, -200.0F, -30.0F, 30.0F, 200.0F, 1e18F};
  const float ones[] = {1, 1, 1, 1, 1, 1};
  float y[6];
  gelu_forward(pool, 6, x, y);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(y[i], 0.0F) << i;
  for (int i = 3; i < 6; ++i) EXPECT_EQ(y[i], x[i]) << i;
  gelu_backward(pool, 6, x, ones, y);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], i < 3 ? 0.0F : 1.0F) << i;
}

}  // namespace
}  // namespace shard::cpu::test
