// Do strategies train to the same bits wherever model data rests, in exactly the arenas planned?
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/agreement/matrix.h"

namespace shard {
namespace {

/// Every stage with every placement, units and the rest turning with them.
std::vector<std::vector<std::size_t>> placed_rows(const Subject& subject) {
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t stage = 0; stage < 4; ++stage)
    for (std::size_t placement = 0; placement < kPlacements.size(); ++placement) {
      const std::size_t n = rows.size();
      rows.push_back({n % subject.worlds.size(), stage, (placement + stage) % kUnits.size(), n % kRecompute.size(),
                      n / 2 % 3, n % 2, 0, placement});
    }
  return rows;
}

class Place : public testing::TestWithParam<plan::Precision> {};

TEST_P(Place, MlpAgrees) {
  const Subject subject{.model = TEST_DATA "/data/models/mlp-small.json",
                        .micro_batch = 2,
                        .global_batch = 16,
                        .sequence = 1,
                        .chunk = Elems{900},
                        .steps = 3,
                        .worlds = {1, 2, 4, 8},
                        .precision = GetParam()};
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t unit = 0; unit < kUnits.size(); ++unit)
    for (std::vector<std::size_t> row : placed_rows(subject)) {
      row[0] = (row[0] + unit) % 4;
      row[2] = unit;
      rows.push_back(row);
    }
  expect_agreement(subject, rows);
}

TEST_P(Place, LlamaNanoAgrees) {
  const Subject subject{.model = TEST_DATA "/data/models/llama-nano.json",
                        .global_batch = 4,
                        .sequence = 8,
                        .chunk = Elems{30'000},
                        .steps = 2,
                        .precision = GetParam()};
  expect_agreement(subject, placed_rows(subject));
}

/// The device's capacity half way between everything on it and everything in host memory.
TEST_P(Place, AutomaticAgrees) {
  const Subject subject{.model = "gpt2-nano",
                        .global_batch = 4,
                        .sequence = 8,
                        .chunk = Elems{100'000},
                        .steps = 2,
                        .precision = GetParam()};
  const auto model = load_model(subject.model);
  ASSERT_TRUE(model);
  const auto arena = [&](const plan::Strategy& s) {
    const auto plans = plan::compile(model, s);
    EXPECT_TRUE(plans);
    return plans ? plans->of_rank(0).arena_bytes[0] : Bytes{0};
  };
  std::string sha;
  bool held = false;
  for (std::size_t stage = 0; stage < 4; ++stage)
    for (std::size_t world = 0; world < subject.worlds.size(); ++world) {
      plan::Strategy s =
          strategy_of(subject, {world, stage, (stage + world) % kUnits.size(), world, stage % 2, 0, 0, 1});
      Bytes capacity = arena(s);
      s.placement = {};
      capacity = Bytes{(capacity.count() + 2 * arena(s).count()) / 3};
      if (world > 0) {
        s.placement.policy = plan::PlacementPolicy::automatic;
        s.placement.device_capacity = capacity;
      }
      const auto run =
          run_in_process(model, s, {.steps = subject.steps, .scalars = {}, .after_step = {}, .before_phase = {}});
      ASSERT_TRUE(run) << to_string(run.error());
      expect_as_planned(*run, subject.steps, to_string(s));
      if (world > 0) {
        EXPECT_LE(run->ranks[0].peak[0], capacity);
      }
      for (const auto& unit : run->plans.of_rank(0).placed.held)
        held = held || std::ranges::find(unit, true) != unit.end();
      if (sha.empty()) sha = run->ranks[0].state_sha256;
      EXPECT_EQ(run->ranks[0].state_sha256, sha) << to_string(s);
    }
  EXPECT_TRUE(held) << "no unit ever stayed on the device between two uses";
}

INSTANTIATE_TEST_SUITE_P(All, Place,
                         testing::Values(plan::Precision::fp32, plan::Precision::bf16, plan::Precision::fp16),
                         [](const auto& param) { return std::string(to_string(param.param)); });

}  // namespace
}  // namespace shard
