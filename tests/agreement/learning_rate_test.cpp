// Does the learning rate rise, stay and fall as its formula says?
#include <gtest/gtest.h>

#include <cmath>

#include "executor/rates/learning_rate.h"

namespace shard::rates {
namespace {

TEST(LearningRate, ConstantIsTheSameInEveryStep) {
  for (std::int64_t step : {0, 1, 99}) EXPECT_EQ(learning_rate({.peak = 0.25, .steps = 100}, step), 0.25);
}

TEST(LearningRate, WarmUpRisesEvenlyToThePeak) {
  const Schedule s{.peak = 8, .warmup_steps = 4, .steps = 10};
  EXPECT_EQ(learning_rate(s, 0), 2);
  EXPECT_EQ(learning_rate(s, 1), 4);
  EXPECT_EQ(learning_rate(s, 3), 8);
  EXPECT_EQ(learning_rate(s, 4), 8);
}

TEST(LearningRate, LinearFallsEvenlyToTheLowest) {
  const Schedule s{.kind = ScheduleKind::linear, .peak = 10, .lowest = 2, .warmup_steps = 2, .steps = 10};
  EXPECT_EQ(learning_rate(s, 2), 10);
  EXPECT_EQ(learning_rate(s, 6), 6);
  EXPECT_EQ(learning_rate(s, 9), 3);
}

// nanoGPT, get_lr(): coefficient 0.5 (1 + cos(pi x)).
TEST(LearningRate, CosineIsSlowAtBothEnds) {
  const Schedule s{.kind = ScheduleKind::cosine, .peak = 6e-4, .lowest = 6e-5, .warmup_steps = 0, .steps = 100};
  EXPECT_EQ(learning_rate(s, 0), 6e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 50), 3.3e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 25), 6e-5 + 5.4e-4 * 0.5 * (1 + std::sqrt(0.5)));
  EXPECT_GT(learning_rate(s, 99), 6e-5);
}

TEST(LearningRate, ARunThatIsAllWarmUpOnlyRises) {
  const Schedule s{.kind = ScheduleKind::cosine, .peak = 1, .warmup_steps = 4, .steps = 4};
  for (std::int64_t step = 0; step < 4; ++step) EXPECT_EQ(learning_rate(s, step), 0.25 * static_cast<double>(step + 1));
}

}  // namespace
}  // namespace shard::rates
