// Cross-entropy and mean squared error against the reference.
#include "executor/cpu/kernels/loss.h"

#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

struct CrossEntropyCase {
  std::int64_t rows;
  std::int32_t vocabulary;
};

class CrossEntropyTest : public testing::TestWithParam<CrossEntropyCase> {
 protected:
  const CrossEntropyCase c = GetParam();
  const CrossEntropyShape shape{c.rows, c.vocabulary};
  const Vec logits = random_values(c.rows * c.vocabulary, 1, 4);
  const ref::Tokens targets = random_tokens_below(c.rows, c.vocabulary, 2);
  const ref::Loss expected =
      ref::cross_entropy(static_cast<std::size_t>(c.rows), static_cast<std::size_t>(c.vocabulary), logits, targets);
};

TEST_P(CrossEntropyTest, Forward) {
  check(
      [&](Call& call) {
        float* loss = call.out(1);
        cross_entropy_forward(call.pool, shape, call.in(logits), targets.data(), loss, call.out(c.rows));
      },
      {{expected.loss}, expected.lse}, 1e-6);
}

TEST_P(CrossEntropyTest, BackwardInPlace) {
  const Vec d = ref::cross_entropy_backward(static_cast<std::size_t>(c.rows), static_cast<std::size_t>(c.vocabulary),
                                            logits, targets, 0.25);
  check(
      [&](Call& call) {
        float* dlogits = call.in_out(logits);
        cross_entropy_backward(call.pool, shape, dlogits, targets.data(), call.in(expected.lse), 0.25F, dlogits);
      },
      {d}, 2e-6);
  check(
      [&](Call& call) {
        cross_entropy_backward(call.pool, shape, call.in(logits), targets.data(), call.in(expected.lse), 0.25F,
                               call.out(c.rows * c.vocabulary));
      },
      {d}, 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CrossEntropyTest,
                         testing::Values(CrossEntropyCase{1, 1}, CrossEntropyCase{3, 10}, CrossEntropyCase{17, 257},
                                         CrossEntropyCase{5, 3001}));

TEST(CrossEntropy, LargeLogitsNeitherOverflowNorVanish) {
  ThreadPool pool(1);
  const float logits[] = {10000.0F, 9999.0F, -10000.0F};
  const std::int32_t target = 1;
  float loss = 0;
  float lse = 0;
  cross_entropy_forward(pool, {1, 3}, logits, &target, &loss, &lse);
  EXPECT_NEAR(loss, 1.3132617, 2e-3);  // ln(1 + e); the logits' own spacing is 1e-3
  float d[3];
  cross_entropy_backward(pool, {1, 3}, logits, &target, &lse, 1.0F, d);
  EXPECT_EQ(d[2], 0.0F);
}

TEST(CrossEntropy, NotANumberReachesTheLoss) {
  ThreadPool pool(1);
  std::vector<float> logits(100, 0.5F);
  const std::int32_t target = 3;
  float loss = 0;
  float lse = 0;
  logits[70] = std::numeric_limits<float>::quiet_NaN();
  cross_entropy_forward(pool, {1, 100}, logits.data(), &target, &loss, &lse);
  EXPECT_TRUE(std::isnan(loss));
  logits[70] = std::numeric_limits<float>::infinity();
  cross_entropy_forward(pool, {1, 100}, logits.data(), &target, &loss, &lse);
  EXPECT_FALSE(std::isfinite(loss));
}

TEST(Mse, ForwardAndBackward) {
  for (const std::int64_t n : {1, 19, 40000, 70001}) {
    const Vec a = random_values(n, 1), b = random_values(n, 2);
    check([&](Call& call) { mse_forward(call.pool, n, call.in(a), call.in(b), call.out(1)); }, {{ref::mse(a, b)}},
          2e-7);
    check(
        [&](Call& call) {
          float* d = call.in_out(a);
          mse_backward(call.pool, n, d, call.in(b), 0.5F, d);
        },
        {ref::mse_backward(a, b, 0.5)}, 3e-7);
  }
}

}  // namespace
}  // namespace shard::cpu::test
