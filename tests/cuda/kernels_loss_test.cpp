// The device's losses against the reference: whole rows and rows that ranks share, scaled, in place, not a number.
#include "tests/cuda/support.h"

namespace shard::cuda::test {
namespace {

const std::vector<CrossEntropyShape> kCrossEntropyShapes = {{1, 1},    {3, 10},   {17, 257},
                                                            {5, 3001}, {300, 40}, {9, 2048}};

template <class T>
class CudaLoss : public testing::Test {};
TYPED_TEST_SUITE(CudaLoss, ElementTypes);

TYPED_TEST(CudaLoss, CrossEntropy) {
  using T = TypeParam;
  for (const CrossEntropyShape& shape : kCrossEntropyShapes) {
    const std::int64_t n = shape.rows * shape.vocabulary;
    const Vec logits = rounded<T>(random_values(n, 1, 4));
    const ref::Tokens targets = random_tokens_below(shape.rows, static_cast<std::int32_t>(shape.vocabulary), 2);
    const ref::Loss expected = ref::cross_entropy(u(shape.rows), u(shape.vocabulary), logits, targets);
    const Vec d = ref::cross_entropy_backward(u(shape.rows), u(shape.vocabulary), logits, targets, 0.25);
    check<T>(
        [&](auto& c) {
          auto* x = c.in(logits);
          float* loss = c.f32_out(1);
          float* lse = c.f32_out(shape.rows);
          const std::int32_t* at = c.raw(targets);
          c.run([&] { cross_entropy_forward(c.stream(), shape, x, at, loss, lse); });
        },
        {{expected.loss}, expected.lse}, 1e-6);
    for (const bool scaled : {false, true})
      check<T>(
          [&](auto& c) {
            auto* x = c.in_out(logits);
            const float* lse = c.f32(expected.lse);
            const float* loss_scale = c.f32({8.0});
            const std::int32_t* at = c.raw(targets);
            c.run([&] {
              cross_entropy_backward(c.stream(), shape, x, at, lse, scaled ? 0.25F / 8 : 0.25F,
                                     scaled ? loss_scale : nullptr, x);
            });
          },
          {d}, 2e-6);
  }
}

// Three ranks: columns [0, 20), [20, 40), and 13 with 7 behind them that belong to no token.
TYPED_TEST(CudaLoss, CrossEntropyInParts) {
  using T = TypeParam;
  constexpr std::int64_t kRows = 37, kColumns = 20, kRanks = 3, kReal = 53;
  const Vec logits = rounded<T>(random_values(kRows * kReal, 1, 4));
  const ref::Tokens targets = random_tokens_below(kRows, kReal, 2);
  const ref::Loss expected = ref::cross_entropy(kRows, kReal, logits, targets);
  const Vec d = ref::cross_entropy_backward(kRows, kReal, logits, targets, 0.5);
  Vec statistics;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    const std::int64_t first = rank * kColumns, real = std::min(kColumns, kReal - first);
    const VocabularyPart part{.rows = kRows, .columns = kColumns, .first = first, .padding = kColumns - real};
    Vec own(kRows * kColumns, 77.0), gradient(own.size(), 0.0), peaks(kRows, -1e30), sums(kRows), hits(kRows);
    for (std::int64_t t = 0; t < kRows; ++t) {
      for (std::int64_t i = 0; i < real; ++i) {
        own[u(t * kColumns + i)] = logits[u(t * kReal + first + i)];
        gradient[u(t * kColumns + i)] = d[u(t * kReal + first + i)];
        peaks[u(t)] = std::max(peaks[u(t)], own[u(t * kColumns + i)]);
      }
      for (std::int64_t i = 0; i < real; ++i) sums[u(t)] += std::exp(own[u(t * kColumns + i)] - peaks[u(t)]);
      const std::int64_t target = targets[u(t)] - first;
      if (target >= 0 && target < real) hits[u(t)] = own[u(t * kColumns + target)];
    }
    Vec of_rank = peaks;
    of_rank.insert(of_rank.end(), sums.begin(), sums.end());
    of_rank.insert(of_rank.end(), hits.begin(), hits.end());
    statistics.insert(statistics.end(), of_rank.begin(), of_rank.end());
    check<T>(
        [&](auto& c) {
          auto* x = c.in(own);
          float* made = c.f32_out(3 * kRows);
          const std::int32_t* at = c.raw(targets);
          c.run([&] { vocabulary_statistics(c.stream(), part, x, at, made); });
        },
        {of_rank}, 1e-6);
    check<T>(
        [&](auto& c) {
          auto* x = c.in_out(own);
          const float* lse = c.f32(expected.lse);
          const std::int32_t* at = c.raw(targets);
          c.run([&] { cross_entropy_part_backward(c.stream(), part, x, at, lse, 0.5F, nullptr, x); });
        },
        {gradient}, 2e-6);
  }
  check<T>(
      [&](auto& c) {
        const float* all = c.f32(statistics);
        float* loss = c.f32_out(1);
        float* lse = c.f32_out(kRows);
        c.run([&] { cross_entropy_from_statistics(c.stream(), kRanks, kRows, all, loss, lse); });
      },
      {{expected.loss}, expected.lse}, 1e-6);
}

// A rank may have nothing but padding; the loss does not see it.
TEST(CudaLoss, ARankWithoutColumns) {
  Call<float, float> call({});
  const std::int32_t* at = call.raw(std::vector<std::int32_t>{1, 0});
  float* x = call.in({1, 2, 3, 4});
  float* statistics = call.f32_out(6);
  call.run([&] {
    vocabulary_statistics(call.stream(), {.rows = 2, .columns = 2, .first = 4, .padding = 2}, x, at, statistics);
  });
  const float kLow = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(call.results()[0], (std::vector<float>{kLow, kLow, 0, 0, 0, 0}));
  Call<float, float> all({});
  // Both ranks' [3,1]: ln(e^2 + e^1), and nothing.
  const float* both = all.f32({2, 1 + std::exp(-1.0), 2, -std::numeric_limits<double>::infinity(), 0, 0});
  float *loss = all.f32_out(1), *lse = all.f32_out(1);
  all.run([&] { cross_entropy_from_statistics(all.stream(), 2, 1, both, loss, lse); });
  EXPECT_NEAR(all.results()[0][0], std::log(1 + std::exp(-1.0)), 1e-6);
}

TEST(CudaLoss, NotANumberReachesTheLossAndLargeLogitsDoNotOverflow) {
  const auto loss_of = [](std::size_t at, double value) {
    Vec logits(300, 0.5);
    logits[at] = value;
    Call<float, float> call({});
    float *x = call.in(logits), *loss = call.f32_out(1), *lse = call.f32_out(3);
    const std::int32_t* targets = call.raw(std::vector<std::int32_t>{3, 4, 5});
    call.run([&] { cross_entropy_forward(call.stream(), {3, 100}, x, targets, loss, lse); });
    return call.results()[0][0];
  };
  EXPECT_TRUE(std::isnan(loss_of(270, std::numeric_limits<double>::quiet_NaN())));
  EXPECT_FALSE(std::isfinite(loss_of(70, std::numeric_limits<double>::infinity())));
  EXPECT_TRUE(std::isfinite(loss_of(70, -std::numeric_limits<double>::infinity())));
  EXPECT_NEAR(loss_of(70, 30000), (30000 - 0.5 + 2 * std::log(100.0)) / 3, 1e-2);
}

TYPED_TEST(CudaLoss, Mse) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 19, 4000, 70001}) {
    const Vec a = rounded<T>(random_values(n, 1)), b = rounded<T>(random_values(n, 2));
    check<T>(
        [&](auto& c) {
          auto *x = c.in(a), *y = c.in(b);
          float* loss = c.f32_out(1);
          c.run([&] { mse_forward(c.stream(), n, x, y, loss); });
        },
        {{ref::mse(a, b)}}, 2e-7);
    check<T>(
        [&](auto& c) {
          auto* x = c.in_out(a);
          auto* y = c.in(b);
          const float* scale = c.f32({4.0});
          c.run([&] { mse_backward(c.stream(), n, x, y, 0.125F, scale, x); });
        },
        {ref::mse_backward(a, b, 0.5)}, 3e-7);
  }
}

}  // namespace
}  // namespace shard::cuda::test
