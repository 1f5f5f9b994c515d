// Linear layers against the reference, in both weight layouts, and gemm's bits.
#include "executor/cpu/kernels/linear.h"

#include "executor/cpu/kernels/gemm.h"
#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

struct LinearCase {
  std::int64_t rows, in, out;
  bool in_out, bias;
};

class LinearTest : public testing::TestWithParam<LinearCase> {
 protected:
  const LinearCase c = GetParam();
  const LinearShape shape{c.rows, c.in, c.out, c.in_out};
  const ref::Linear reference{static_cast<std::size_t>(c.rows), static_cast<std::size_t>(c.in),
                              static_cast<std::size_t>(c.out), c.in_out};
  const Vec x = random_values(c.rows * c.in, 1);
  const Vec w = random_values(c.in * c.out, 2);
  const Vec b = c.bias ? random_values(c.out, 3) : Vec{};
  const Vec dy = random_values(c.rows * c.out, 4);
  const ref::LinearGradient gradient = ref::linear_backward(reference, x, w, dy);
  static constexpr double kTolerance = 3e-6;
};

TEST_P(LinearTest, Forward) {
  check(
      [&](Call& call) {
        linear_forward(call.pool, shape, call.in(x), call.in(w), c.bias ? call.in(b) : nullptr,
                       call.out(c.rows * c.out));
      },
      {ref::linear(reference, x, w, b)}, kTolerance);
}

TEST_P(LinearTest, BackwardInput) {
  check(
      [&](Call& call) {
        linear_backward_input(call.pool, shape, call.in(dy), call.in(w), call.out(c.rows * c.in), Store::write);
      },
      {gradient.dx}, kTolerance);
  check(
      [&](Call& call) { linear_backward_input(call.pool, shape, call.in(dy), call.in(w), call.in_out(x), Store::add); },
      {sum(gradient.dx, x)}, kTolerance);
}

TEST_P(LinearTest, BackwardWeight) {
  check(
      [&](Call& call) {
        float* dw = call.out(c.in * c.out);
        float* db = c.bias ? call.out(c.out) : nullptr;
        linear_backward_weight(call.pool, shape, call.in(x), call.in(dy), dw, db, Store::write);
      },
      c.bias ? std::vector<Vec>{gradient.dw, gradient.db} : std::vector<Vec>{gradient.dw}, kTolerance);
  if (!c.bias) return;
  check(
      [&](Call& call) {
        float* dw = call.in_out(w);
        float* db = call.in_out(b);
        linear_backward_weight(call.pool, shape, call.in(x), call.in(dy), dw, db, Store::add);
      },
      {sum(gradient.dw, w), sum(gradient.db, b)}, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearTest,
                         testing::Values(LinearCase{1, 1, 1, false, true}, LinearCase{3, 17, 29, false, true},
                                         LinearCase{3, 17, 29, true, true}, LinearCase{70, 100, 257, false, false},
                                         LinearCase{33, 64, 400, true, true}, LinearCase{129, 48, 16, false, true},
                                         LinearCase{530, 9, 700, true, false}));

// The recipe's layer, at which a product split between threads inside the library changes its bits.
TEST(Gemm, SameBitsForTwentyByTwoThousand) {
  constexpr std::int64_t kRows = 20;
  constexpr std::int64_t kWide = 2000;
  const Vec x = random_values(kRows * kWide, 1), w = random_values(kWide * kWide, 2),
            dy = random_values(kRows * kWide, 3);
  std::vector<std::vector<float>> first;
  for (const Manner manner : {Manner{1, 0}, Manner{2, 0}, Manner{3, 20}, Manner{4, 60}}) {
    Call call(manner);
    float* y = call.out(kRows * kWide);
    float* dx = call.out(kRows * kWide);
    float* dw = call.out(kWide * kWide);
    const LinearShape shape{kRows, kWide, kWide, false};
    const float* x32 = call.in(x);
    const float* w32 = call.in(w);
    const float* dy32 = call.in(dy);
    linear_forward(call.pool, shape, x32, w32, nullptr, y);
    linear_backward_input(call.pool, shape, dy32, w32, dx, Store::write);
    linear_backward_weight(call.pool, shape, x32, dy32, dw, nullptr, Store::write);
    const auto results = call.results();
    if (first.empty()) first = results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(same_bits(first[i], results[i])) << "product " << i << " with " << manner.threads << " threads";
    }
  }
}

// Every thread takes part, or it would wait forever; the bits of a product do not change by it.
TEST(Gemm, WarmUp) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    warm_up(pool);
    const float a[] = {1, 2, 3, 4};
    float c[4];
    gemm(pool, 2, 2, 2, {a, 2, false}, {a, 2, true}, c, 2, Store::write);
    EXPECT_EQ(std::vector<float>(c, c + 4), (std::vector<float>{5, 11, 11, 25}));
  }
}

}  // namespace
}  // namespace shard::cpu::test
