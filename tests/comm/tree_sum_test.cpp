// Is a sum over ranks the complete binary tree, neighbours first, for every number of ranks and every cut?
#include "executor/comm/tree_sum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <tuple>
#include <vector>

#include "executor/comm/parts.h"
#include "tests/comm/reference.h"

namespace shard::test {
namespace {

constexpr std::size_t kCount = 3001;

/// Number of ranks and element type.
class TreeSum : public testing::TestWithParam<std::tuple<int, Dtype>> {};

TEST_P(TreeSum, IsTheTreeLevelByLevelWithEveryNodeRounded) {
  const auto [ranks, dtype] = GetParam();
  const auto element = static_cast<std::size_t>(bytes_per_element(dtype));
  const std::size_t bytes = kCount * element;
  // Eight-byte words keep every type aligned.
  std::vector<std::vector<std::uint64_t>> values(static_cast<std::size_t>(ranks), std::vector<std::uint64_t>(kCount));
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < ranks; ++rank) {
    auto* const own = reinterpret_cast<std::byte*>(values[static_cast<std::size_t>(rank)].data());
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::uint64_t bits = element_of(dtype, rank, static_cast<std::int64_t>(i), 1);
      std::memcpy(own + i * element, &bits, element);  // little endian
    }
    sources.push_back(own);
  }
  std::vector<std::byte> expected(bytes);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint64_t bits = sum_of(dtype, RankGroup{0, 1, ranks}, static_cast<std::int64_t>(i), 1);
    std::memcpy(expected.data() + i * element, &bits, element);
  }
  const auto left_in = [&](const std::vector<std::uint64_t>& memory) {
    const auto* const begin = reinterpret_cast<const std::byte*>(memory.data());
    return std::vector<std::byte>(begin, begin + bytes);
  };

  std::vector<std::uint64_t> sum(kCount);
  tree_sum(dtype, sources, reinterpret_cast<std::byte*>(sum.data()), kCount);
  EXPECT_EQ(left_in(sum), expected);

  std::vector<std::uint64_t> cut(kCount);  // in two pieces, at an odd place
  const std::size_t skip = 1237 * element;
  tree_sum(dtype, sources, reinterpret_cast<std::byte*>(cut.data()), 1237);
  for (const std::byte*& source : sources) source += skip;
  tree_sum(dtype, sources, reinterpret_cast<std::byte*>(cut.data()) + skip, kCount - 1237);
  EXPECT_EQ(left_in(cut), expected);

  for (const std::byte*& source : sources) source -= skip;
  tree_sum(dtype, sources, reinterpret_cast<std::byte*>(values.back().data()), kCount);  // into the last source
  EXPECT_EQ(left_in(values.back()), expected);
}

INSTANTIATE_TEST_SUITE_P(Ranks, TreeSum,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 64, 100),
                                          testing::Values(Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i64)),
                         [](const auto& setting) {
                           return std::to_string(std::get<0>(setting.param)) + to_string(std::get<1>(setting.param));
                         });

TEST(TreeSum, RoundingOnlyTheRootWouldBeSeen) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    int differing = 0;
    for (std::int64_t i = 0; i < 1000; ++i) {
      float exact = 0;
      for (int rank = 0; rank < 3; ++rank) exact += value_of_bits(dtype, element_of(dtype, rank, i, 1));
      differing += bits_of(dtype, exact) != sum_of(dtype, RankGroup{0, 1, 3}, i, 1) ? 1 : 0;
    }
    EXPECT_GT(differing, 50);
  }
}

TEST(TreeSum, AnotherOrderWouldBeSeen) {
  int differing = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const float a = value_of(Values::random, 0, i, 1), b = value_of(Values::random, 1, i, 1),
                c = value_of(Values::random, 2, i, 1), d = value_of(Values::random, 3, i, 1);
    differing += ((a + b) + (c + d)) != (((a + b) + c) + d) ? 1 : 0;
  }
  EXPECT_GT(differing, 100);
}

TEST(Parts, CoverTheBufferOnceAndBeginAligned) {
  for (const std::int64_t elems : {0, 1, 15, 16, 17, 1000, 65537})
    for (const std::int64_t world : {1, 2, 3, 5, 8, 64}) {
      std::int64_t next = 0;
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const ElemRange part = part_of(Elems{elems}, rank, world, 4);
        EXPECT_EQ(part.begin, next);
        EXPECT_TRUE(part.begin % 16 == 0 || part.size() == 0);
        next = part.end;
      }
      EXPECT_EQ(next, elems);
    }
}

}  // namespace
}  // namespace shard::test
