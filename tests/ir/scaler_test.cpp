// Does the loss scale follow the written rule? Expected scales are from the rule's words, step by step, and from a
// second, slow form of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "sim/ir/scaler.h"
#include "tests/ir/scaler_table.h"

namespace shard::plan {
namespace {

/// The scale behind every step; 'x' overflows, '.' does not.
std::vector<float> scales(const std::string& steps, const ScalerKnobs& knobs) {
  ScalerState state{.scale = knobs.initial_scale};
  std::vector<float> result;
  for (char step : steps) result.push_back((state = after_step(state, knobs, step == 'x')).scale);
  return result;
}
using Scales = std::vector<float>;

TEST(Scaler, FollowsTheTableOfTheSpecification) {
  ScalerState state{.scale = test::kTableKnobs.initial_scale};
  for (const test::ScalerRow& row : test::scaler_table()) {
    EXPECT_EQ(state.scale, row.scale);
    state = after_step(state, test::kTableKnobs, row.overflow);
    EXPECT_EQ(state, row.behind) << state.scale << ' ' << state.good_steps << ' ' << state.overflows;
  }
}

TEST(Scaler, TheFirstOverflowsAreBorne) {
  EXPECT_EQ(scales("xxxx", {.initial_scale = 64, .hysteresis = 2}), (Scales{64, 32, 16, 8}));
  EXPECT_EQ(scales("xxxx", {.initial_scale = 64, .hysteresis = 3}), (Scales{64, 64, 32, 16}));
}

TEST(Scaler, HysteresisZeroAndOneAreEqual) {
  for (std::int32_t hysteresis : {0, 1})
    EXPECT_EQ(scales("x.x", {.initial_scale = 64, .hysteresis = hysteresis}), (Scales{32, 32, 16}));
}

// Only growth forgets overflows; good steps and backoffs do not.
TEST(Scaler, GoodStepsDoNotForgiveAnOverflow) {
  EXPECT_EQ(scales("x..x..x", {.initial_scale = 64, .growth_interval = 3, .hysteresis = 2}),
            (Scales{64, 64, 64, 32, 32, 32, 16}));
}

TEST(Scaler, GrowthForgivesThemAll) {
  EXPECT_EQ(scales("xx..xx", {.initial_scale = 64, .growth_interval = 2, .hysteresis = 2}),
            (Scales{64, 32, 32, 64, 64, 32}));
}

TEST(Scaler, AnOverflowInterruptsARowOfGoodSteps) {
  EXPECT_EQ(scales("..x..x...", {.initial_scale = 64, .growth_interval = 3, .hysteresis = 9}),
            (Scales{64, 64, 64, 64, 64, 64, 64, 64, 128}));
}

TEST(Scaler, TheScaleStaysWithinItsLimits) {
  EXPECT_EQ(
      scales("xxx....", {.initial_scale = 16, .min_scale = 6, .max_scale = 20, .growth_interval = 2, .hysteresis = 1}),
      (Scales{8, 6, 6, 6, 12, 12, 20}));
}

TEST(Scaler, FactorsAreTheUsers) {
  EXPECT_EQ(scales("x..", {.initial_scale = 100,
                           .growth_factor = 1.5F,
                           .backoff_factor = 0.25F,
                           .growth_interval = 2,
                           .hysteresis = 1}),
            (Scales{25, 25, 37.5F}));
}

TEST(Scaler, DefaultsAreThoseOfTheClass) {
  const ScalerKnobs knobs;
  EXPECT_EQ(knobs.initial_scale, 65536.0F);
  EXPECT_EQ(scales(std::string(1000, '.'), knobs)[998], 65536.0F);
  EXPECT_EQ(scales(std::string(1000, '.'), knobs)[999], 131072.0F);
  EXPECT_EQ(scales("xx", knobs), (Scales{65536, 32768}));
}

/// The rule over the whole history: looks back instead of counting.
float slow(const std::string& history, const ScalerKnobs& knobs) {
  float scale = knobs.initial_scale;
  std::size_t grown = 0;  // behind the step at which it grew last
  for (std::size_t i = 0; i < history.size(); ++i) {
    const std::string since = history.substr(grown, i + 1 - grown);
    if (history[i] == 'x') {
      const auto seen = std::count(since.begin(), since.end(), 'x');
      if (seen >= knobs.hysteresis) scale = std::max(scale * knobs.backoff_factor, knobs.min_scale);
      continue;
    }
    const std::size_t last = since.find_last_of('x');
    const std::size_t good = last == std::string::npos ? since.size() : since.size() - last - 1;
    if (good != static_cast<std::size_t>(knobs.growth_interval)) continue;
    scale = std::min(scale * knobs.growth_factor, knobs.max_scale);
    grown = i + 1;
  }
  return scale;
}

TEST(Scaler, AnyHistoryEndsWhereTheSlowRuleDoes) {
  std::mt19937 random(1);
  const auto upto = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  for (int i = 0; i < 2000; ++i) {
    const ScalerKnobs knobs{.initial_scale = 1024,
                            .min_scale = upto(2) == 1 ? 64.0F : 1.0F,
                            .max_scale = upto(2) == 1 ? 4096.0F : 1e9F,
                            .growth_interval = upto(4),
                            .hysteresis = upto(4) - 1};
    std::string history;
    const int odds = upto(5);
    for (int k = upto(40); k > 0; --k) history += upto(5) > odds ? 'x' : '.';
    ASSERT_EQ(scales(history, knobs).back(), slow(history, knobs)) << history;
  }
}

}  // namespace
}  // namespace shard::plan
