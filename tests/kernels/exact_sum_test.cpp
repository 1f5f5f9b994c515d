// The exact sum of squares: against integers bit by bit, in any order and cut, to the ends of the range.
#include "executor/cpu/kernels/exact_sum.h"

#include <bit>

#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

// Squares added bit by bit to a count per power of two, then rounded by hand.
class Oracle {
 public:
  void add(float x) {
    int exponent = 0;
    const double fraction = std::frexp(std::abs(static_cast<double>(x)), &exponent);
    const auto whole = static_cast<std::uint64_t>(std::ldexp(fraction, 24));
    const std::uint64_t square = whole * whole;  // times 2^(2 (exponent - 24))
    for (int b = 0; b < 48; ++b)
      if ((square >> b & 1U) != 0) ++bits_[static_cast<std::size_t>(kZero + 2 * (exponent - 24) + b)];
  }
  [[nodiscard]] double rounded() const {
    std::vector<std::uint64_t> bits = bits_;
    for (std::size_t i = 0; i + 1 < bits.size(); ++i) {
      bits[i + 1] += bits[i] / 2;
      bits[i] %= 2;
    }
    std::size_t top = bits.size() - 1;
    while (top > 0 && bits[top] == 0) --top;
    if (bits[top] == 0) return 0;
    std::uint64_t whole = 0;
    for (std::size_t i = 0; i < 53; ++i) whole = whole * 2 + bits[top - i];
    bool below = false;
    for (std::size_t i = 0; i < top - 53; ++i) below = below || bits[i] != 0;
    if (bits[top - 53] != 0 && (below || whole % 2 != 0)) ++whole;
    return std::ldexp(static_cast<double>(whole), static_cast<int>(top) - 52 - kZero);
  }

 private:
  static constexpr int kZero = 400;
  std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>(800, 0);
};

double exact(const std::vector<float>& x) {
  Oracle oracle;
  for (const float v : x) oracle.add(v);
  return oracle.rounded();
}

double sum_of(const std::vector<float>& x, int threads = 1) {
  ThreadPool pool(threads);
  GradientFacts facts;
  square_sum_add(pool, x.data(), static_cast<std::int64_t>(x.size()), 0, facts);
  return square_sum(facts);
}

// Any finite floats, subnormals and the largest ones among them, or of a few exponents.
std::vector<float> any_floats(std::size_t n, unsigned seed, std::uint32_t exponents = 255, std::uint32_t from = 0) {
  std::mt19937 engine(seed);
  std::vector<float> x(n);
  for (float& v : x) {
    const auto fraction = static_cast<std::uint32_t>(engine() & 0x807FFFFFU);
    v = std::bit_cast<float>(fraction | (from + static_cast<std::uint32_t>(engine()) % exponents) << 23);
  }
  return x;
}

TEST(ExactSum, RoundedOnce) {
  EXPECT_EQ(sum_of({}), 0.0);
  EXPECT_EQ(sum_of({3.0F, -4.0F}), 25.0);
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<float> wide = any_floats(1 + seed * 7, seed), narrow = any_floats(2 + seed % 9, seed, 30, 100);
    EXPECT_EQ(sum_of(wide), exact(wide)) << seed;
    EXPECT_EQ(sum_of(narrow), exact(narrow)) << seed;
  }
}

TEST(ExactSum, EndsOfTheRange) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kSmallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(sum_of({kSmallest}), 0x1p-298);
  EXPECT_EQ(sum_of({kLargest}), static_cast<double>(kLargest) * static_cast<double>(kLargest));
  const std::vector<float> many(100000, kLargest);
  EXPECT_EQ(sum_of(many), exact(many));
  // 2^53 and a half of its last place: the smallest square there is decides.
  const std::vector<float> tie = {0x1p26F, 0x1p26F, 0x1p-1F, 0x1p-1F, 0x1p-1F, 0x1p-1F};
  EXPECT_EQ(sum_of(tie), 0x1p53);
  std::vector<float> above = tie;
  above.push_back(kSmallest);
  EXPECT_EQ(sum_of(above), 0x1p53 + 2);
}

TEST(ExactSum, AnyOrderAndCut) {
  std::vector<float> x = any_floats(50000, 1);
  x[17] = -0.0F;
  const double expected = exact(x);
  std::mt19937 engine(2);
  for (int round = 0; round < 12; ++round) {
    std::shuffle(x.begin(), x.end(), engine);
    ThreadPool pool(1 + round % 4);
    std::vector<GradientFacts> parts(5);
    for (std::size_t i = 0; i < x.size();) {
      const std::size_t n = std::min<std::size_t>(x.size() - i, 1 + engine() % 20000);
      square_sum_add(pool, x.data() + i, static_cast<std::int64_t>(n), 0, parts[engine() % parts.size()]);
      i += n;
    }
    std::shuffle(parts.begin(), parts.end(), engine);
    GradientFacts all;
    for (const GradientFacts& part : parts) combine(part, all);
    EXPECT_EQ(square_sum(all), expected) << round;
    EXPECT_EQ(all.nonfinite, 0);
    EXPECT_EQ(all.first_nonfinite, GradientFacts::kNone);
  }
}

TEST(ExactSum, SameWordsForAnyThreads) {
  const std::vector<float> x = any_floats(100003, 3);
  GradientFacts first;
  for (const int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    GradientFacts facts;
    square_sum_add(pool, x.data(), 100003, 0, facts);
    if (threads == 1) first = facts;
    EXPECT_EQ(std::memcmp(&facts, &first, sizeof facts), 0) << threads;
  }
}

TEST(ExactSum, HalvesAreTheirValues) {
  ThreadPool pool(2);
  std::vector<F16> f16;
  std::vector<Bf16> bf16;
  std::vector<float> of_f16, of_bf16;
  for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
    const F16 a{static_cast<std::uint16_t>(bits)};
    const Bf16 b{static_cast<std::uint16_t>(bits)};
    if (std::isfinite(to_f32(a))) of_f16.push_back(to_f32(a));
    if (std::isfinite(to_f32(b))) of_bf16.push_back(to_f32(b));
    f16.push_back(a);
    bf16.push_back(b);
  }
  GradientFacts a, b;
  square_sum_add(pool, f16.data(), 1 << 16, 0, a);
  square_sum_add(pool, bf16.data(), 1 << 16, 0, b);
  EXPECT_EQ(square_sum(a), exact(of_f16));
  EXPECT_EQ(square_sum(b), exact(of_bf16));
  EXPECT_EQ(a.nonfinite, (1 << 16) - static_cast<std::int64_t>(of_f16.size()));
  EXPECT_EQ(b.nonfinite, (1 << 16) - static_cast<std::int64_t>(of_bf16.size()));
  EXPECT_EQ(a.first_nonfinite, 0x7C00);
  EXPECT_EQ(b.first_nonfinite, 0x7F80);
}

TEST(ExactSum, FirstElementThatIsNotFinite) {
  std::vector<float> x = any_floats(70000, 4);
  const double before = exact(x);
  x.push_back(1.0F);
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::signaling_NaN()}) {
    std::vector<float> y = x;
    for (const std::size_t at : {60001U, 33333U, 70000U}) y[at] = bad;
    std::vector<float> finite;
    for (const float v : y)
      if (std::isfinite(v)) finite.push_back(v);
    for (const int threads : {1, 4}) {
      ThreadPool pool(threads);
      GradientFacts facts;
      square_sum_add(pool, y.data(), 70001, 1000, facts);
      EXPECT_EQ(facts.nonfinite, 3);
      EXPECT_EQ(facts.first_nonfinite, 34333);
      EXPECT_EQ(square_sum(facts), exact(finite));
    }
  }
  EXPECT_GT(before, 0);
}

// As many additions as the header promises: full limbs stay below 2^63, and carry where they should.
TEST(ExactSum, FullLimbs) {
  GradientFacts facts;
  for (std::int64_t& limb : facts.limbs) limb = 0;
  facts.limbs[3] = (std::int64_t{1} << 31) * 0xFFFFFFFF;
  facts.limbs[2] = facts.limbs[3];
  EXPECT_EQ(square_sum(facts), std::ldexp(0xFFFFFFFF * (1 + 0x1p-32), 31 + 96 - 298));
}

}  // namespace
}  // namespace shard::cpu::test
