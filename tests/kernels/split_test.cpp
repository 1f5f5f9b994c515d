// Do ranks that share a model, each with its kernel on its part, get what one rank gets from the whole?
#include "executor/cpu/kernels/split.h"

#include <numeric>

#include "executor/cpu/kernels/embedding.h"
#include "executor/cpu/kernels/loss.h"
#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

struct VocabularyCase {
  std::int64_t rows;
  std::int64_t vocabulary;
  std::int64_t ranks;
};

class PartsOfAVocabulary : public testing::TestWithParam<VocabularyCase> {
 protected:
  const VocabularyCase c = GetParam();
  const std::int64_t columns = (c.vocabulary + c.ranks - 1) / c.ranks;
  const Vec logits = random_values(c.rows * c.vocabulary, 1, 4);
  const ref::Tokens targets = random_tokens_below(c.rows, static_cast<std::int32_t>(c.vocabulary), 2);
  ThreadPool pool{2};

  [[nodiscard]] VocabularyPart part(std::int64_t rank) const {
    const std::int64_t first = rank * columns;
    return {.rows = c.rows,
            .columns = columns,
            .first = first,
            .padding = std::clamp<std::int64_t>(first + columns - c.vocabulary, 0, columns)};
  }
  /// A rank's logits; those of the padding are large, so that one that is read shows.
  [[nodiscard]] std::vector<float> own_logits(std::int64_t rank) const {
    std::vector<float> own;
    for (std::int64_t t = 0; t < c.rows; ++t)
      for (std::int64_t i = rank * columns; i < (rank + 1) * columns; ++i)
        own.push_back(i < c.vocabulary ? static_cast<float>(logits[static_cast<std::size_t>(t * c.vocabulary + i)])
                                       : 1e6F);
    return own;
  }
};

TEST_P(PartsOfAVocabulary, LossAndGradientsAreThoseOfTheWhole) {
  const ref::Loss expected =
      ref::cross_entropy(static_cast<std::size_t>(c.rows), static_cast<std::size_t>(c.vocabulary), logits, targets);
  const Vec gradient = ref::cross_entropy_backward(static_cast<std::size_t>(c.rows),
                                                   static_cast<std::size_t>(c.vocabulary), logits, targets, 0.25);
  std::vector<float> statistics(static_cast<std::size_t>(3 * c.ranks * c.rows));
  for (std::int64_t r = 0; r < c.ranks; ++r) {
    const std::vector<float> own = own_logits(r);
    vocabulary_statistics(pool, part(r), own.data(), targets.data(), statistics.data() + 3 * r * c.rows);
  }
  float loss = 0;
  std::vector<float> lse(static_cast<std::size_t>(c.rows));
  cross_entropy_from_statistics(c.ranks, c.rows, statistics.data(), &loss, lse.data());
  EXPECT_NEAR(loss, expected.loss, 1e-6 * std::max(1.0, expected.loss));
  for (std::size_t t = 0; t < lse.size(); ++t) EXPECT_NEAR(lse[t], expected.lse[t], 2e-6);
  for (std::int64_t r = 0; r < c.ranks; ++r) {
    std::vector<float> own = own_logits(r);
    cross_entropy_part_backward(pool, part(r), own.data(), targets.data(), lse.data(), 0.25F, own.data());
    for (std::int64_t t = 0; t < c.rows; ++t)
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::int64_t token = r * columns + i;
        const double wanted = token < c.vocabulary ? gradient[static_cast<std::size_t>(t * c.vocabulary + token)] : 0;
        EXPECT_NEAR(own[static_cast<std::size_t>(t * columns + i)], wanted, 1e-6);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PartsOfAVocabulary,
                         testing::Values(VocabularyCase{3, 10, 2}, VocabularyCase{17, 257, 4}, VocabularyCase{5, 9, 4},
                                         VocabularyCase{4, 3, 4}, VocabularyCase{2, 3001, 3}));

TEST(PartsOfATable, RowsThatAreElsewhereAreZeroAndSkipped) {
  constexpr std::int64_t kTokens = 9, kColumns = 5, kVocabulary = 7, kRows = 4;  // 2 ranks, one row of padding
  const Vec table = random_values((kVocabulary + 1) * kColumns, 1);
  const Vec dy = random_values(kTokens * kColumns, 2);
  const ref::Tokens tokens = random_tokens_below(kTokens, kVocabulary, 3);
  const std::vector<float> whole(table.begin(), table.end());
  const std::vector<float> d(dy.begin(), dy.end());
  ThreadPool pool(2);
  std::vector<float> sum(static_cast<std::size_t>(kTokens * kColumns), 0.0F);
  std::vector<float> gradients;
  for (std::int64_t r = 0; r < 2; ++r) {
    const EmbeddingShape part{.tokens = kTokens, .vocabulary = kRows, .columns = kColumns, .first = r * kRows};
    std::vector<float> y(sum.size(), NAN);
    embedding_forward(pool, part, tokens.data(), whole.data() + r * kRows * kColumns, y.data());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += y[i];
    std::vector<float> own(static_cast<std::size_t>(kRows * kColumns), NAN);
    embedding_backward(pool, part, d.data(), tokens.data(), own.data(), Store::write, {});
    gradients.insert(gradients.end(), own.begin(), own.end());
  }
  const EmbeddingShape all{.tokens = kTokens, .vocabulary = kVocabulary + 1, .columns = kColumns};
  std::vector<float> y(sum.size());
  embedding_forward(pool, all, tokens.data(), whole.data(), y.data());
  EXPECT_EQ(sum, y);
  std::vector<float> gradient(gradients.size());
  embedding_backward(pool, all, d.data(), tokens.data(), gradient.data(), Store::write, {});
  EXPECT_EQ(gradients, gradient);
}

TEST(Columns, TakenAndJoinedAreTheWhole) {
  constexpr std::int64_t kRows = 37, kColumns = 3, kParts = 4;
  ThreadPool pool(3);
  std::vector<float> x(static_cast<std::size_t>(kRows * kColumns * kParts));
  std::iota(x.begin(), x.end(), 0.0F);
  const ColumnParts shape{.rows = kRows, .columns = kColumns, .parts = kParts};
  std::vector<float> gathered(x.size());
  for (std::int64_t p = 0; p < kParts; ++p)
    take_columns(pool, shape, p, x.data(), gathered.data() + p * kRows * kColumns);
  EXPECT_EQ(gathered[static_cast<std::size_t>(kRows * kColumns + kColumns)], 12.0F + 3.0F) << "row 1, column 3";
  std::vector<float> y(x.size());
  join_columns(pool, shape, gathered.data(), y.data());
  EXPECT_EQ(y, x);
}

TEST(AddBias, IsRoundedOnceInEveryType) {
  ThreadPool pool(1);
  float y[] = {1, 2, 3, 4, 5, 6};
  const float bias[] = {10, 20, 30};
  add_bias(pool, 2, 3, bias, y);
  EXPECT_EQ((std::vector<float>(y, y + 6)), (std::vector<float>{11, 22, 33, 14, 25, 36}));
  Bf16 half[] = {from_f32<Bf16>(1.0F), from_f32<Bf16>(256.0F)};
  const Bf16 small[] = {from_f32<Bf16>(0.5F), from_f32<Bf16>(1.5F)};
  add_bias(pool, 1, 2, small, half);
  EXPECT_EQ(to_f32(half[0]), 1.5F);
  EXPECT_EQ(to_f32(half[1]), 258.0F);  // 257.5, to the nearest of 256 and 258
}

}  // namespace
}  // namespace shard::cpu::test
