// Does placement auto fill device memory, and never more than there is?
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "sim/check/verify.h"
#include "sim/compile/placement/belady.h"
#include "tests/compile/random_cases.h"
#include "tests/compile/support.h"

namespace shard::plan {
namespace {

std::int64_t device_arena(const PlanSet& plans) {
  std::int64_t most = 0;
  for (const Plan& plan : plans.classes) most = std::max(most, plan.arena_bytes[0].count());
  return most;
}

Strategy training(std::int32_t stage) {
  return {.world_size = 2, .stage = stage, .micro_batch = 1, .global_batch = 4, .sequence = 8};
}
Strategy automatic(Strategy s, std::int64_t capacity, double ratio = 1) {
  s.placement = {.policy = PlacementPolicy::automatic, .device_capacity = Bytes{capacity}, .margin_ratio = ratio};
  return s;
}
Strategy on_host(Strategy s) {
  s.placement.policy = PlacementPolicy::host;
  return s;
}

std::ptrdiff_t on_device(const PlanSet& plans, Memory Resting::*kind) {
  return std::ranges::count(plans.classes[0].placed.resting, Memory::device, kind);
}

// With equal sizes and constant room no choice keeps more.
TEST(Belady, KeepsAsManyGapsAsAnyChoice) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t moments = 8;
    const auto room = static_cast<std::int64_t>(1 + random() % 3);
    std::vector<Gap> gaps(1 + random() % 8);
    for (Gap& gap : gaps) {
      gap.begin = random() % moments;
      gap.end = gap.begin + 1 + random() % (moments - gap.begin);
      gap.bytes = 1;
    }
    std::vector<std::int64_t> free(moments, room);
    const std::vector<bool> kept = keep_nearest(gaps, free);
    EXPECT_GE(*std::ranges::min_element(free), 0);
    int best = 0;
    for (unsigned choice = 0; choice < 1U << gaps.size(); ++choice) {
      std::vector<std::int64_t> left(moments, room);
      for (std::size_t g = 0; g < gaps.size(); ++g)
        for (std::size_t t = gaps[g].begin; (choice >> g & 1U) != 0 && t < gaps[g].end; ++t) --left[t];
      if (*std::ranges::min_element(left) >= 0) best = std::max(best, std::popcount(choice));
    }
    EXPECT_EQ(std::ranges::count(kept, true), best) << "round " << round;
  }
}

/// Ranks with like data, and those that own unlike units or parameters.
std::vector<Strategy> every_division(std::int32_t stage) {
  std::vector<Strategy> result{training(stage)};
  if (stage == 0) return result;
  Strategy owned = training(stage);
  owned.ownership = Ownership::rank;
  owned.world_size = 3;
  owned.global_batch = 3;
  result.push_back(owned);
  if (stage != 1) return result;
  result.push_back(training(stage));
  result.back().partition = Partition::parameter;
  return result;
}

TEST(Automatic, IsWithinTheCapacityWheneverTheHostCanHelp) {
  for (std::int32_t stage : {0, 1, 2, 3})
    for (const Precision precision : {Precision::fp32, Precision::fp16})
      for (Strategy s : every_division(stage)) {
        s.precision = precision;
        s.prefetch = stage % 2;
        s.reuse_shard = stage == 3 && s.has_masters() && s.accumulation() == 1;
        const std::int64_t least = device_arena(compiled(small_gpt2(), on_host(s)));
        const std::int64_t most = device_arena(compiled(small_gpt2(), s));
        ASSERT_LT(least, most);
        std::ptrdiff_t moved_in = 0;
        for (std::int64_t capacity = least; capacity <= most;
             capacity += std::max<std::int64_t>((most - least) / 12, 1)) {
          const PlanSet plans = compiled(small_gpt2(), automatic(s, capacity));
          EXPECT_LE(device_arena(plans), capacity) << to_string(s);
          EXPECT_TRUE(verify(plans)) << to_string(verify(plans).error());
          moved_in = std::max(moved_in, on_device(plans, &Resting::optimizer));
        }
        EXPECT_GT(moved_in, 0) << to_string(s);
        EXPECT_LE(device_arena(compiled(small_gpt2(), automatic(s, least - 1))), least) << "as little as can be";
      }
}

TEST(Automatic, LeavesEverythingOnTheDeviceThatHasRoomForIt) {
  for (std::int32_t stage : {0, 1, 2, 3})
    for (const Strategy& s : every_division(stage)) {
      const PlanSet plans = compiled(small_gpt2(), automatic(s, 1 << 30));
      const auto units = static_cast<std::ptrdiff_t>(plans.classes[0].units.size());
      EXPECT_EQ(on_device(plans, &Resting::parameters), units) << stage;
      EXPECT_EQ(on_device(plans, &Resting::gradients), units) << stage;
      EXPECT_EQ(on_device(plans, &Resting::optimizer), units) << stage;
    }
}

// The last unit of backward's walk is the first of the next step.
TEST(Automatic, TheUnitNeededSoonestInTheNextStepRestsOnTheDeviceFirst) {
  const Strategy s = training(0);
  const std::int64_t least = device_arena(compiled(small_gpt2(), on_host(s)));
  for (std::int64_t more = 0; more < 1 << 16; more += 256) {
    const PlanSet plans = compiled(small_gpt2(), automatic(s, least + more, 0));
    if (on_device(plans, &Resting::parameters) == 0) continue;
    EXPECT_EQ(plans.classes[0].placed.resting.front().parameters, Memory::device);
    return;
  }
  ADD_FAILURE() << "nothing ever rests on the device";
}

TEST(Automatic, TheMarginIsSharedAsAsked) {
  const Strategy s = training(2);
  const std::int64_t most = device_arena(compiled(small_gpt2(), s));
  const auto moved = [&](double ratio) {
    return on_device(compiled(small_gpt2(), automatic(s, most, ratio)), &Resting::optimizer);
  };
  EXPECT_EQ(moved(0), 0);
  EXPECT_GT(moved(0.6), 0);
  EXPECT_LT(moved(0.6), moved(1));
}

TEST(Automatic, WhatTheUserPlacedStaysThere) {
  Strategy s = automatic(training(2), 1 << 30);
  s.placement.optimizer = kOnDisk;
  s.placement.parameters = kOnHost;
  const PlanSet plans = compiled(small_gpt2(), s);
  EXPECT_EQ(on_device(plans, &Resting::parameters), 0);
  EXPECT_EQ(on_device(plans, &Resting::optimizer), 0);
  EXPECT_EQ(std::ranges::count(plans.classes[0].placed.resting, Memory::disk, &Resting::optimizer),
            std::ranges::count_if(plans.classes[0].units, [](const Unit&) { return true; }));
}

// A measured peak above the plan's own leaves less.
TEST(Automatic, AMeasuredPeakLeavesLess) {
  Strategy s = training(2);
  const std::int64_t most = device_arena(compiled(small_gpt2(), s));
  s = automatic(s, 2 * most);
  s.placement.non_model_peak = Bytes{0};
  const auto all = on_device(compiled(small_gpt2(), s), &Resting::optimizer);
  s.placement.non_model_peak = Bytes{2 * most};
  const PlanSet none = compiled(small_gpt2(), s);
  EXPECT_GT(all, 0);
  EXPECT_EQ(on_device(none, &Resting::optimizer), 0);
  EXPECT_EQ(on_device(none, &Resting::parameters), 0);
}

TEST(Automatic, AllRanksDecideAsRankZero) {
  Strategy s = training(3);
  s.world_size = 4;
  s.global_batch = 8;
  s.unit = UnitKind::chunk;
  s.chunk_elems = Elems{400};
  const PlanSet plans = compiled(small_gpt2(), automatic(s, device_arena(compiled(small_gpt2(), s)) * 3 / 4));
  ASSERT_GT(plans.classes.size(), 1u);
  for (const Plan& plan : plans.classes) EXPECT_EQ(plan.placed, plans.classes[0].placed);
}

}  // namespace
}  // namespace shard::plan
