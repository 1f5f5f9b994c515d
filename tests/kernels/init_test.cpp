// Random numbers: the generator's published values, distributions, and the same values for any cut.
#include "executor/cpu/kernels/init.h"

#include <set>

#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

std::vector<float> normals(ThreadPool& pool, const RandomKey& key, std::int64_t first, std::int64_t n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  random_normal(pool, key, first, n, 1.0F, out.data());
  return out;
}

// Random123's known-answer vectors (kat_vectors, philox4x32 10): the words in order, through random_integers' high
// bits.
TEST(Random, PhiloxKnownAnswers) {
  ThreadPool pool(1);
  std::int32_t out[4];
  random_integers(pool, {0, RandomStream::parameter, 0}, 0, 4, 1 << 30, out);
  EXPECT_EQ(out[0], 0x6627e8d5 >> 2);
  EXPECT_EQ(out[1], static_cast<std::int32_t>(0xe169c58dU >> 2));
  EXPECT_EQ(out[2], static_cast<std::int32_t>(0xbc57ac4cU >> 2));
  EXPECT_EQ(out[3], static_cast<std::int32_t>(0x9b00dbd8U >> 2));
}

// Written again, in the plainest way, for counters other than 0.
std::uint32_t philox_word(std::uint64_t seed, std::uint32_t stream, std::uint64_t index, std::uint64_t element) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(element / 4), static_cast<std::uint32_t>(index),
                        static_cast<std::uint32_t>(index >> 32), stream};
  std::uint32_t k[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ULL * c[0];
    const std::uint64_t b = 0xCD9E8D57ULL * c[2];
    const std::uint32_t next[4] = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
                                   static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9U;
    k[1] += 0xBB67AE85U;
  }
  return c[element % 4];
}

TEST(Random, IntegersAreTheWordsOfTheirKey) {
  ThreadPool pool(2);
  const RandomKey key{0x0123456789abcdefULL, RandomStream::tokens, 0x1122334455ULL};
  std::vector<std::int32_t> out(5000);
  random_integers(pool, key, 333, 5000, 50257, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t word = philox_word(key.seed, 1, key.index, 333 + i);
    ASSERT_EQ(out[i], static_cast<std::int32_t>(word * 50257 >> 32)) << i;
  }
}

TEST(Random, NormalsAreBoxMullerOfTheWords) {
  ThreadPool pool(2);
  const RandomKey key{7, RandomStream::parameter, 3};
  const std::vector<float> out = normals(pool, key, 0, 100000);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double u = ((philox_word(7, 0, 3, i / 2 * 2) >> 8) + 1.0) / 16777216;
    const double turn = (philox_word(7, 0, 3, i / 2 * 2 + 1) >> 8) / 16777216.0;
    const double radius = std::sqrt(-2 * std::log(u));
    const double expected = radius * (i % 2 == 0 ? std::cos(2 * M_PI * turn) : std::sin(2 * M_PI * turn));
    ASSERT_NEAR(out[i], expected, 1e-6) << i;
  }
}

TEST(Random, SameValuesForAnyCutAndThreads) {
  ThreadPool one(1);
  const RandomKey key{42, RandomStream::parameter, 9};
  constexpr std::int64_t kSize = 70001;
  const std::vector<float> whole = normals(one, key, 0, kSize);
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const std::int64_t piece : {std::int64_t{1009}, std::int64_t{30000}, kSize}) {
      std::vector<float> cut;
      for (std::int64_t i = 0; i < kSize; i += piece) {
        const auto part = normals(pool, key, i, std::min(piece, kSize - i));
        cut.insert(cut.end(), part.begin(), part.end());
      }
      EXPECT_TRUE(same_bits(whole, cut)) << threads << " threads, pieces of " << piece;
    }
  }
}

TEST(Random, MomentsOfTheDistributions) {
  ThreadPool pool(2);
  constexpr std::int64_t kSize = 400000;
  const std::vector<float> normal = normals(pool, {1, RandomStream::parameter, 0}, 0, kSize);
  std::vector<float> uniform(kSize);
  random_uniform(pool, {1, RandomStream::parameter, 1}, 0, kSize, 0.5F, uniform.data());
  double mean = 0, square = 0, fourth = 0, uniform_mean = 0, uniform_square = 0;
  for (std::size_t i = 0; i < normal.size(); ++i) {
    const double v = static_cast<double>(normal[i]);
    const double u = static_cast<double>(uniform[i]);
    ASSERT_TRUE(std::abs(u) <= 0.5);
    mean += v / kSize;
    square += v * v / kSize;
    fourth += v * v * v * v / kSize;
    uniform_mean += u / kSize;
    uniform_square += u * u / kSize;
  }
  EXPECT_NEAR(mean, 0, 0.008);  // five standard errors each
  EXPECT_NEAR(square, 1, 0.012);
  EXPECT_NEAR(fourth, 3, 0.08);
  EXPECT_NEAR(uniform_mean, 0, 0.0025);
  EXPECT_NEAR(uniform_square, 1.0 / 12, 0.0006);
}

TEST(Random, KeysGiveDifferentSequences) {
  ThreadPool pool(1);
  std::set<std::vector<float>> seen;
  for (const RandomKey& key :
       {RandomKey{1, RandomStream::parameter, 0}, RandomKey{2, RandomStream::parameter, 0},
        RandomKey{1, RandomStream::samples, 0}, RandomKey{1, RandomStream::parameter, 1},
        RandomKey{1, RandomStream::parameter, 1ULL << 32}, RandomKey{1ULL << 32, RandomStream::parameter, 0}}) {
    seen.insert(normals(pool, key, 0, 8));
  }
  EXPECT_EQ(seen.size(), 6U);
}

}  // namespace
}  // namespace shard::cpu::test
