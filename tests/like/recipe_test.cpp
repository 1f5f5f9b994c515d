// Does the emulation reach the published peaks of PyTorch's ZeroRedundancyOptimizer recipe, to the byte?
#include <gmock/gmock.h>

#include "sim/like/report.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

using test::like;
using test::maxima;
using test::recipe;
using test::recipe_model;
using testing::ElementsAre;

// The recipe prints whole MB: 335, 656, 992, then 1361 with sharded optimizer state and 1697 without.
TEST(Recipe, FivePublishedPeaks) {
  EXPECT_THAT(maxima(like(recipe_model(), recipe(1))), ElementsAre(335708160, 656572416, 992921600, 1361863680));
  EXPECT_THAT(maxima(like(recipe_model(), recipe(0))), ElementsAre(335708160, 656572416, 992921600, 1697571840));
}

TEST(Recipe, MomentsHaveTheirNamesInOrder) {
  std::vector<std::string> names;
  for (const Moment& m : like(recipe_model(), recipe(1)).moments) names.push_back(m.name);
  EXPECT_THAT(names, ElementsAre("after the local model", "after DDP", "before step", "after step"));
}

TEST(Recipe, WhatIsLiveBesideParametersGradientsAndBuckets) {
  const auto small = [](const Moment& moment) {
    std::vector<std::string> names;
    for (const Block& b : moment.blocks)
      if (b.category == Category::input || b.category == Category::activation || b.category == Category::workspace)
        names.push_back(b.name + " " + std::to_string(b.taken.count()));
    return names;
  };
  const LikeResult r = like(recipe_model(), recipe(0));
  EXPECT_EQ(small(r.moments[2]).size(), 4u) << "input, output, labels, the gradient that enters layer 0";
  for (const std::string& name : small(r.moments[2])) EXPECT_THAT(name, testing::EndsWith(" 160256"));
  ASSERT_EQ(small(r.moments[3]).size(), 4u) << "output, labels, two temporaries of Adam";
  EXPECT_THAT(small(r.moments[3])[2], testing::EndsWith(" 16777216"));
  EXPECT_THAT(small(r.moments[3])[3], testing::EndsWith(" 16777216"));
}

TEST(Recipe, OptimizerStateIsEightBytesAnElement) {
  EXPECT_EQ(like(recipe_model(), recipe(0)).optimizer_state.count(), 2 * 20 * (2000 * 2000 + 2000) * 4);
  EXPECT_EQ(like(recipe_model(), recipe(1)).optimizer_state.count(), 2 * 10 * (2000 * 2000 + 2000) * 4);
}

TEST(Recipe, BlocksOfEveryMomentSumToIt) {
  for (std::int32_t stage : {0, 1}) {
    for (const Moment& m : like(recipe_model(), recipe(stage)).moments) {
      Bytes sum{0};
      for (const Block& b : m.blocks) sum += b.taken;
      EXPECT_EQ(sum, m.max_allocated) << m.name;
      EXPECT_GE(m.max_reserved, m.max_allocated);
    }
  }
}

TEST(Recipe, CollectivesAreThoseOfTheScript) {
  const LikeResult r = like(recipe_model(), recipe(1));
  const std::int64_t parameters = 20 * (2000 * 2000 + 2000) * 4;
  ASSERT_EQ(r.collectives.size(), 3u);
  EXPECT_EQ(r.collectives[0].kind, Collective::broadcast);  // of the module's state, and of the shapes
  EXPECT_EQ(r.collectives[0].count, 3);
  EXPECT_EQ(r.collectives[0].bytes.count(), parameters + 20 * (4 + 2) * 8);
  EXPECT_EQ(r.collectives[1].kind, Collective::all_reduce);
  EXPECT_EQ(r.collectives[1].count, 11);
  EXPECT_EQ(r.collectives[1].bytes.count(), parameters);
  EXPECT_EQ(r.collectives[2].kind, Collective::broadcast);  // ZeroRedundancyOptimizer: each parameter
  EXPECT_EQ(r.collectives[2].count, 40);
  EXPECT_EQ(r.collectives[2].bytes.count(), parameters);
}

// Tests that can fail: a wrong rule must show in the figures.
TEST(Recipe, WrongRulesGiveOtherFigures) {
  const std::vector<std::int64_t> right = maxima(like(recipe_model(), recipe(1)));
  Rules rules;
  rules.broadcasts_in_flight = 1;
  EXPECT_NE(maxima(like(recipe_model(), recipe(1), rules))[1], right[1]);
  rules = {};
  rules.broadcast_bucket = Bytes{25 << 20};
  EXPECT_NE(maxima(like(recipe_model(), recipe(1), rules))[1], right[1]);
  rules = {};
  rules.bucket = Bytes{40 << 20};
  EXPECT_NE(maxima(like(recipe_model(), recipe(1), rules))[2], right[2]);
  CachingAllocatorOptions always_split;
  always_split.large_split_remainder = Bytes{0};
  const Result<LikeResult> split = simulate_like("pytorch", recipe_model(), recipe(1),
                                                 {.device_capacity = {}, .rules = {}, .allocator = always_split});
  ASSERT_TRUE(split);
  EXPECT_NE(maxima(*split)[0], right[0]);
  rules = {};
  rules.adam_temporaries = 3;
  EXPECT_NE(maxima(like(recipe_model(), recipe(1), rules))[3], right[3]);
}

}  // namespace
}  // namespace shard::like
