// Token and position embeddings: sums in order of tokens, tied tables, rows beyond the sequence.
#include "executor/cpu/kernels/embedding.h"

#include "tests/kernels/support.h"

namespace shard::cpu::test {
namespace {

struct EmbeddingCase {
  std::int64_t tokens, columns;
  std::int32_t vocabulary;
};

class EmbeddingTest : public testing::TestWithParam<EmbeddingCase> {
 protected:
  const EmbeddingCase c = GetParam();
  const EmbeddingShape shape{c.tokens, c.vocabulary, c.columns};
  const std::vector<std::int32_t> tokens = random_tokens_below(c.tokens, c.vocabulary, 1);
  const Vec table = random_values(c.vocabulary * c.columns, 2);
  const Vec dy = random_values(c.tokens * c.columns, 3);

  // fp32 on purpose: the order of additions is part of the contract, so equality is exact.
  Vec scatter(const Vec& start) const {
    std::vector<float> d(start.begin(), start.end());
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(c.columns); ++i) {
        d[static_cast<std::size_t>(tokens[t]) * static_cast<std::size_t>(c.columns) + i] +=
            static_cast<float>(dy[t * static_cast<std::size_t>(c.columns) + i]);
      }
    }
    return {d.begin(), d.end()};
  }
};

TEST_P(EmbeddingTest, Forward) {
  Vec expected;
  for (const std::int32_t token : tokens) {
    expected.insert(expected.end(), table.begin() + token * c.columns, table.begin() + (token + 1) * c.columns);
  }
  check(
      [&](Call& call) {
        embedding_forward(call.pool, shape, tokens.data(), call.in(table), call.out(c.tokens * c.columns));
      },
      {expected}, 0);
}

TEST_P(EmbeddingTest, BackwardSumsInOrderOfTokens) {
  check(
      [&](Call& call) {
        embedding_backward(call.pool, shape, call.in(dy), tokens.data(), call.out(c.vocabulary * c.columns),
                           Store::write);
      },
      {scatter(Vec(table.size(), 0.0))}, 0);
}

TEST_P(EmbeddingTest, BackwardAddsToATiedTable) {
  check(
      [&](Call& call) {
        embedding_backward(call.pool, shape, call.in(dy), tokens.data(), call.in_out(table), Store::add);
      },
      {scatter(table)}, 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, EmbeddingTest,
                         testing::Values(EmbeddingCase{1, 1, 1}, EmbeddingCase{50, 37, 7},
                                         EmbeddingCase{200, 300, 257}));

TEST(Position, ForwardAddsTheRowOfEachPosition) {
  const PositionShape shape{3, 5, 8, 19};
  const Vec x = random_values(3 * 5 * 19, 1), table = random_values(8 * 19, 2);
  Vec expected = x;
  for (std::size_t t = 0; t < 15; ++t) {
    for (std::size_t i = 0; i < 19; ++i) expected[t * 19 + i] += table[t % 5 * 19 + i];
  }
  check(
      [&](Call& call) {
        float* y = call.in_out(x);
        add_position_forward(call.pool, shape, y, call.in(table), y);
      },
      {expected}, 1e-7);
}

TEST(Position, BackwardSumsOverSequencesAndZeroesTheRest) {
  const PositionShape shape{3, 5, 8, 19};
  const Vec dy = random_values(3 * 5 * 19, 1), before = random_values(8 * 19, 2);
  Vec expected(8 * 19, 0.0);
  for (std::size_t t = 0; t < 15; ++t) {
    for (std::size_t i = 0; i < 19; ++i) expected[t % 5 * 19 + i] += dy[t * 19 + i];
  }
  check([&](Call& call) { add_position_backward(call.pool, shape, call.in(dy), call.out(8 * 19)); }, {expected}, 2e-7);
  check([&](Call& call) { add_position_backward(call.pool, shape, call.in(dy), call.in_out(before), Store::add); },
        {sum(expected, before)}, 2e-7);
}

}  // namespace
}  // namespace shard::cpu::test
