// The device's sums, conversions and activations against the reference, in place and not, around packs and blocks.
#include <cmath>

#include "tests/cuda/support.h"

namespace shard::cuda::test {
namespace {

template <class T>
class CudaElementwise : public testing::Test {};
TYPED_TEST_SUITE(CudaElementwise, ElementTypes);

TYPED_TEST(CudaElementwise, Sums) {
  using T = TypeParam;
  for (const std::int64_t n : kLengths) {
    const Vec a = rounded<T>(random_values(n, 1, 3)), b = rounded<T>(random_values(n, 2, 3));
    check<T>(
        [&](auto& c) {
          auto* x = c.in(a);
          auto* z = c.in(b);
          auto* y = c.out(n);
          c.run([&] { add(c.stream(), n, x, z, y); });
        },
        {sum(a, b)}, 1e-7);
    check<T>(
        [&](auto& c) {
          auto* from = c.in(a);
          auto* to = c.in_out(b);
          c.run([&] { add_into(c.stream(), n, from, to); });
        },
        {sum(a, b)}, 1e-7);
  }
}

TYPED_TEST(CudaElementwise, Gelu) {
  using T = TypeParam;
  for (const std::int64_t n : kLengths) {
    const Vec x = rounded<T>(random_values(n, 1, 3)), d = rounded<T>(random_values(n, 2));
    const Vec y = each([](double v, double, double) { return ref::gelu(v); }, x, x, x);
    const Vec dx = each([](double v, double g, double) { return g * ref::gelu_slope(v); }, x, d, d);
    check<T>(
        [&](auto& c) {
          auto* xs = c.in(x);
          auto* ys = c.out(n);
          c.run([&] { gelu_forward(c.stream(), n, xs, ys); });
        },
        {y}, 2e-7);
    check<T>(
        [&](auto& c) {
          auto* xs = c.in(x);
          auto* ds = c.in_out(d);
          c.run([&] { gelu_backward(c.stream(), n, xs, ds, ds); });
        },
        {dx}, 3e-7);
  }
}

TYPED_TEST(CudaElementwise, Swiglu) {
  using T = TypeParam;
  for (const std::int64_t n : kLengths) {
    const Vec gate = rounded<T>(random_values(n, 1, 3)), up = rounded<T>(random_values(n, 2)),
              d = rounded<T>(random_values(n, 3));
    const Vec y = each([](double g, double u, double) { return ref::swiglu(g, u); }, gate, up, d);
    const Vec dgate = each([](double g, double u, double v) { return v * ref::swiglu_gate_slope(g, u); }, gate, up, d);
    const Vec dup = each([](double g, double, double v) { return v * ref::swiglu(g, 1); }, gate, up, d);
    check<T>(
        [&](auto& c) {
          auto* g = c.in(gate);
          auto* u = c.in(up);
          auto* ys = c.out(n);
          c.run([&] { swiglu_forward(c.stream(), n, g, u, ys); });
        },
        {y}, 3e-7);
    check<T>(
        [&](auto& c) {
          auto* g = c.in(gate);
          auto* u = c.in(up);
          auto* v = c.in(d);
          auto* dg = c.out(n);
          auto* du = c.out(n);
          c.run([&] { swiglu_backward(c.stream(), n, g, u, v, dg, du); });
        },
        {dgate, dup}, 3e-7);
    check<T>(
        [&](auto& c) {  // over dy and over up
          auto* g = c.in(gate);
          auto* v = c.in_out(d);
          auto* u = c.in_out(up);
          c.run([&] { swiglu_backward(c.stream(), n, g, u, v, v, u); });
        },
        {dgate, dup}, 3e-7);
  }
}

// Far from zero gelu is x or 0 and its slope 1 or 0: nothing overflows on the way.
TYPED_TEST(CudaElementwise, GeluOfLargeArguments) {
  using T = TypeParam;
  const Vec x = {-6e4, -200, -30, 30, 200, 6e4};
  const Vec held = rounded<T>(x);
  check<T>(
      [&](auto& c) {
        auto* xs = c.in(x);
        auto* ones = c.in(Vec(6, 1.0));
        auto* y = c.out(6);
        auto* dx = c.out(6);
        c.run([&] {
          gelu_forward(c.stream(), 6, xs, y);
          gelu_backward(c.stream(), 6, xs, ones, dx);
        });
      },
      {{0, 0, 0, held[3], held[4], held[5]}, {0, 0, 0, 1, 1, 1}}, 0);
}

/// What a copy of `values` from From to To gives.
template <class From, class To>
std::vector<To> copied(const std::vector<From>& values, std::uint64_t seed) {
  Call<To, To> call({seed, 0});
  const auto n = static_cast<std::int64_t>(values.size());
  From* from = call.raw(values);
  To* to = call.raw(std::vector<To>(values.size()), model::Access::write);
  call.run([&] { convert_copy(call.stream(), n, from, to); });
  return call.content(to);
}

// Every 16-bit value to fp32 and back, and to the other 16-bit type through fp32.
template <class Half, class Other>
void convert_every_value() {
  std::vector<Half> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> wide(all.size());
  std::vector<Half> back(all.size());
  std::vector<Other> other(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    wide[i] = to_f32(all[i]);
    back[i] = from_f32<Half>(wide[i]);
    other[i] = from_f32<Other>(wide[i]);
  }
  EXPECT_TRUE(same_bits((copied<Half, float>(all, 1)), wide));
  EXPECT_EQ((copied<float, Half>(wide, 2)), back);
  EXPECT_EQ((copied<Half, Other>(all, 3)), other);
  EXPECT_EQ((copied<Half, Half>(all, 4)), all) << "signalling NaN stay what they are";
  EXPECT_TRUE(same_bits((copied<float, float>(wide, 5)), wide));
}

TEST(CudaConvertCopy, EveryHalf) {
  convert_every_value<Bf16, F16>();
  convert_every_value<F16, Bf16>();
}

// Sizes that are no multiple of what a thread moves at once: what lies behind stays as it is.
TEST(CudaConvertCopy, EndsWithItsLastElement) {
  for (const std::size_t n : {1, 9, 8191}) {
    const std::vector<Bf16> ones(n, Bf16{0x3F80});
    EXPECT_EQ((copied<Bf16, Bf16>(ones, n)), ones);
    EXPECT_TRUE(same_bits((copied<Bf16, float>(ones, n)), std::vector<float>(n, 1.0F)));
  }
}

// Nothing to do is no launch: sizes of zero are refused by every device.
TEST(CudaNothing, IsNoLaunch) {
  Call<float, float> c({});
  float* x = c.in_out({1});
  c.run([&] {
    add(c.stream(), 0, x, x, x);
    convert_copy(c.stream(), 0, x, x);
    gelu_forward(c.stream(), 0, x, x);
    gelu_backward(c.stream(), 0, x, x, x);
    swiglu_forward(c.stream(), 0, x, x, x);
    swiglu_backward(c.stream(), 0, x, x, x, x, x);
  });
  EXPECT_EQ(c.results()[0][0], 1.0F);
}

}  // namespace
}  // namespace shard::cuda::test
