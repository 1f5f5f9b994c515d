// The device's token and position embeddings: sums in order of tokens, tied tables, rows that no token names.
#include "tests/cuda/support.h"

namespace shard::cuda::test {
namespace {

using Tokens = std::vector<std::int32_t>;

template <class T>
class CudaEmbedding : public testing::Test {};
TYPED_TEST_SUITE(CudaEmbedding, ElementTypes);

/// table + dy at the tokens, in order, in fp32 on purpose: the order of additions is part of the contract, and all
/// types sum as fp32 does, so equality is exact but for the rounding to T.
Vec scatter(const EmbeddingShape& shape, const Tokens& tokens, const Vec& dy, const Vec& table) {
  std::vector<float> d(table.begin(), table.end());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::int64_t row = tokens[t] - shape.first;
    if (row < 0 || row >= shape.vocabulary) continue;
    for (std::size_t i = 0; i < u(shape.columns); ++i)
      d[u(row * shape.columns) + i] += static_cast<float>(dy[t * u(shape.columns) + i]);
  }
  return {d.begin(), d.end()};
}

Vec take(const EmbeddingShape& shape, const Tokens& tokens, const Vec& table) {
  Vec y;
  for (const std::int32_t token : tokens) {
    const std::int64_t row = token - shape.first;
    const bool has_row = row >= 0 && row < shape.vocabulary;
    for (std::int64_t i = 0; i < shape.columns; ++i) y.push_back(has_row ? table[u(row * shape.columns + i)] : 0.0);
  }
  return y;
}

template <class T>
void check_embedding(const EmbeddingShape& shape, const Tokens& tokens, unsigned seed) {
  const std::int64_t size = shape.vocabulary * shape.columns, n = shape.tokens * shape.columns;
  const Vec table = rounded<T>(random_values(size, seed + 1)), dy = rounded<T>(random_values(n, seed + 2));
  const std::string what = std::to_string(shape.tokens) + " tokens of " + std::to_string(shape.vocabulary) + ", " +
                           std::to_string(shape.columns) + " columns";
  check<T>(
      [&](auto& c) {
        auto* from = c.in(table);
        auto* y = c.out(n);
        auto* at = c.raw(tokens);
        c.run([&] { embedding_forward(c.stream(), shape, at, from, y); });
      },
      {take(shape, tokens, table)}, 0, what);
  check<T>(
      [&](auto& c) {
        auto* d = c.in(dy);
        auto* to = c.out(size);
        auto* at = c.raw(tokens);
        c.run([&] { embedding_backward(c.stream(), shape, d, at, to, Store::write); });
      },
      {scatter(shape, tokens, dy, Vec(table.size(), 0.0))}, 0, what);
  check<T>(
      [&](auto& c) {
        auto* d = c.in(dy);
        auto* to = c.in_out(table);
        auto* at = c.raw(tokens);
        c.run([&] { embedding_backward(c.stream(), shape, d, at, to, Store::add); });
      },
      {scatter(shape, tokens, dy, table)}, 0, what);
}

TYPED_TEST(CudaEmbedding, Tokens) {
  // One warp and several; strips of columns; more tokens than a block looks at together; few words, often the same.
  const std::vector<EmbeddingShape> shapes = {{1, 1, 1}, {50, 7, 37}, {200, 257, 300}, {33, 5, 2070}, {1400, 90, 8}};
  for (const EmbeddingShape& shape : shapes)
    check_embedding<TypeParam>(shape, random_tokens_below(shape.tokens, static_cast<std::int32_t>(shape.vocabulary), 1),
                               1);
}

TYPED_TEST(CudaEmbedding, RandomSizes) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    Shapes random(seed);
    const EmbeddingShape shape{random.upto(300), random.upto(seed % 2 == 0 ? 3 : 500), random.upto(300)};
    check_embedding<TypeParam>(
        shape, random_tokens_below(shape.tokens, static_cast<std::int32_t>(shape.vocabulary), seed), seed);
  }
}

// A rank with a part of the vocabulary: what is not its own is 0, and skipped.
TYPED_TEST(CudaEmbedding, PartOfAVocabulary) {
  const EmbeddingShape shape{.tokens = 150, .vocabulary = 20, .columns = 24, .first = 30};
  check_embedding<TypeParam>(shape, random_tokens_below(shape.tokens, 80, 3), 3);
}

TYPED_TEST(CudaEmbedding, Positions) {
  using T = TypeParam;
  const std::vector<PositionShape> shapes = {
      {1, 1, 1, 1}, {3, 5, 8, 19}, {2, 33, 33, 40}, {70, 4, 6, 8}, {5, 20, 31, 300}};
  for (const PositionShape& shape : shapes) {
    const std::int64_t n = shape.batch * shape.sequence * shape.columns, size = shape.positions * shape.columns;
    const Vec x = rounded<T>(random_values(n, 1)), table = rounded<T>(random_values(size, 2));
    Vec y = x, d(table.size(), 0.0);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t at = i % u(shape.sequence * shape.columns);
      y[i] += table[at];
      d[at] += x[i];
    }
    check<T>(
        [&](auto& c) {
          auto* to = c.in_out(x);
          auto* positions = c.in(table);
          c.run([&] { add_position_forward(c.stream(), shape, to, positions, to); });
        },
        {y}, 1e-7);
    check<T>(
        [&](auto& c) {
          auto* dy = c.in(x);
          auto* to = c.out(size);
          c.run([&] { add_position_backward(c.stream(), shape, dy, to, Store::write); });
        },
        {d}, 1e-6);
    check<T>(
        [&](auto& c) {
          auto* dy = c.in(x);
          auto* to = c.in_out(table);
          c.run([&] { add_position_backward(c.stream(), shape, dy, to, Store::add); });
        },
        {sum(d, table)}, 1e-6);
  }
}

}  // namespace
}  // namespace shard::cuda::test
