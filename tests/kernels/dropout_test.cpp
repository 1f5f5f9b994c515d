// Dropout: how much is dropped, by which key, and that forward, backward, cuts and types agree.
#include "executor/cpu/kernels/dropout.h"

#include "tests/kernels/half_support.h"

namespace shard::cpu::test {
namespace {

std::vector<float> dropout_mask(const RandomKey& key, float probability, std::int64_t first, std::int64_t n,
                                int threads = 1) {
  ThreadPool pool(threads);
  const std::vector<float> ones(static_cast<std::size_t>(n), 1.0F);
  std::vector<float> y(ones.size());
  dropout(pool, key, probability, first, n, ones.data(), y.data());
  return y;
}

TEST(Dropout, KeepsTheRightShareAndScalesIt) {
  constexpr std::int64_t n = 1 << 20;
  for (const float p : {0.0F, 0.1F, 0.5F, 0.9F}) {
    const std::vector<float> y = dropout_mask(dropout_key(7, 3, 11), p, 0, n);
    const auto kept = static_cast<double>(n - std::count(y.begin(), y.end(), 0.0F));
    const double expected = (1 - static_cast<double>(p)) * n;
    EXPECT_NEAR(kept, expected, 5 * std::sqrt(expected * static_cast<double>(p)) + 0.5) << p;
    const auto factor = static_cast<float>(1 / (1 - static_cast<double>(p)));
    for (const float v : y) ASSERT_TRUE(v == 0.0F || v == factor) << v;
  }
}

TEST(Dropout, EveryPartOfTheKeyMatters) {
  const RandomKey keys[] = {dropout_key(1, 0, 0), dropout_key(2, 0, 0), dropout_key(1, 1, 0),
                            dropout_key(1, 0, 1), dropout_key(1, 1, 1), dropout_key(1, (std::int64_t{1} << 40) - 1, 0)};
  std::vector<std::vector<float>> masks;
  for (const RandomKey& key : keys) masks.push_back(dropout_mask(key, 0.5F, 0, 4096));
  for (std::size_t a = 0; a < masks.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      std::int64_t same = 0;
      for (std::size_t i = 0; i < masks[a].size(); ++i) same += masks[a][i] == masks[b][i] ? 1 : 0;
      EXPECT_NEAR(static_cast<double>(same), 2048, 200) << a << " and " << b;
    }
}

TEST(Dropout, AnyCutIsTheSameMask) {
  const RandomKey key = dropout_key(5, 9, 2);
  const std::vector<float> whole = dropout_mask(key, 0.3F, 0, 40000);
  for (const int threads : {1, 2, 4}) EXPECT_EQ(dropout_mask(key, 0.3F, 0, 40000, threads), whole);
  for (const std::int64_t first : {0, 1, 255, 256, 257, 16385})
    for (const std::int64_t n : {1, 255, 700, 20000}) {
      const std::vector<float> part = dropout_mask(key, 0.3F, first, n);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << first << " " << n;
    }
}

// The gradient passes exactly where the value did, and what is dropped is 0 whatever it was.
TEST(Dropout, BackwardIsTheSameFunction) {
  const RandomKey key = dropout_key(5, 9, 2);
  const std::vector<float> m = dropout_mask(key, 0.25F, 0, 1000);
  ThreadPool pool(1);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> d(1000, kInfinity);
  dropout(pool, key, 0.25F, 0, 1000, d.data(), d.data());
  for (std::size_t i = 0; i < d.size(); ++i) EXPECT_EQ(d[i], m[i] == 0.0F ? 0.0F : kInfinity) << i;
  EXPECT_GT(std::count(d.begin(), d.end(), 0.0F), 100);
}

TEST(Dropout, Halves) {
  for (const std::int64_t n : {1, 300, 20011}) {
    const Vec x = random_values(n, 1);
    const auto body = [&](auto& c) { dropout(c.pool, dropout_key(1, 2, 3), 0.1F, 77, n, c.in(x), c.out(n)); };
    check_half<Bf16>(body, {}, 0);
    check_half<F16>(body, {}, 0);
  }
}

}  // namespace
}  // namespace shard::cpu::test
