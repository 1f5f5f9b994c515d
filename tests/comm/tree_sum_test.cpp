// Is a sum over ranks the complete binary tree, neighbours first, for every number of ranks and every cut?
#include "executor/comm/tree_sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "executor/comm/parts.h"
#include "tests/comm/reference.h"

namespace shard::test {
namespace {

constexpr std::int64_t kCount = 3001;

class TreeSum : public testing::TestWithParam<int> {};

TEST_P(TreeSum, IsTheTreeLevelByLevel) {
  const int ranks = GetParam();
  std::vector<std::vector<float>> values(static_cast<std::size_t>(ranks), std::vector<float>(kCount));
  std::vector<const float*> sources;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float>& own = values[static_cast<std::size_t>(rank)];
    for (std::int64_t i = 0; i < kCount; ++i) own[static_cast<std::size_t>(i)] = value_of(Values::random, rank, i, 1);
    sources.push_back(own.data());
  }
  std::vector<float> expected;
  for (std::int64_t i = 0; i < kCount; ++i) expected.push_back(sum_of(Values::random, ranks, i, 1));

  std::vector<float> sum(kCount);
  tree_sum(sources, sum.data(), kCount);
  EXPECT_EQ(sum, expected);

  std::vector<float> cut(kCount);  // in two pieces, at an odd place
  tree_sum(sources, cut.data(), 1237);
  for (const float*& source : sources) source += 1237;
  tree_sum(sources, cut.data() + 1237, kCount - 1237);
  EXPECT_EQ(cut, expected);

  for (const float*& source : sources) source -= 1237;
  float* last = values.back().data();  // into the last source
  tree_sum(sources, last, kCount);
  EXPECT_EQ(values.back(), expected);
}

INSTANTIATE_TEST_SUITE_P(Ranks, TreeSum, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 64, 100));

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
