// Do strategies train to the same bits wherever model data rests, in exactly the arenas planned?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tests/agreement/matrix.h"
#include "tests/daily.h"

namespace shard {
namespace {

constexpr const char* kMlp = TEST_DATA "/data/models/mlp-small.json";

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
  const Subject subject{.model = kMlp,
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
  expect_agreement(subject, daily::part_of(rows, 6));
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

/// Units with owners, and gradients in their parameters' place, wherever they rest: the bits of one rank.
void expect_same_as_one_rank(const std::shared_ptr<const model::Model>& model,
                             const std::vector<plan::Strategy>& strategies) {
  const train::SessionOptions session = session_of(3);
  std::map<std::pair<std::int64_t, std::size_t>, std::string> digests;  // by micro-batches and patterns
  for (const plan::Strategy& s : daily::part_of(strategies, 6)) {
    std::string& sha = digests[{s.micro_batches(), s.freeze.size()}];
    if (sha.empty()) {
      const plan::Strategy one{
          .micro_batch = s.micro_batch, .global_batch = s.global_batch, .precision = s.precision, .freeze = s.freeze};
      const auto run = run_in_process(model, one, session);
      ASSERT_TRUE(run) << to_string(run.error());
      sha = run->ranks[0].state_sha256;
    }
    const auto run = run_in_process(model, s, session);
    ASSERT_TRUE(run) << to_string(s) << ": " << to_string(run.error());
    expect_as_planned(*run, session.steps, to_string(s));
    EXPECT_EQ(run->ranks[0].state_sha256, sha) << to_string(s);
  }
}

/// world, stage, unit, placement, recompute, prefetch, hybrid sharding, gathered once, loss scale, frozen
plan::Strategy owned(const std::vector<std::size_t>& row, plan::Precision precision) {
  plan::Strategy s{.world_size = std::array{1, 2, 4, 8}[row[0]],
                   .stage = static_cast<std::int32_t>(row[1]) + 1,
                   .unit = kUnits[row[2]],
                   .chunk_elems = Elems{900},
                   .micro_batch = 2,
                   .global_batch = 16,
                   .recompute = kRecompute[row[4]],
                   .precision = precision,
                   .prefetch = static_cast<std::int32_t>(row[5]),
                   .loss_scaling = row[8] == 1,
                   .placement = kPlacements[row[3]],
                   .ownership = plan::Ownership::rank};
  s.shard_group = row[6] == 1 && s.world_size >= 4 ? s.world_size / 2 : 0;
  s.keep_gathered = row[7] == 1 && s.stage == 3;
  if (row[9] == 1) s.freeze = {"*.bias"};
  return s;
}

TEST_P(Place, OwnedUnitsAgree) {
  std::vector<plan::Strategy> strategies;
  for (const std::vector<std::size_t>& row : pairwise({4, 3, 4, kPlacements.size(), 3, 3, 2, 2, 2, 2}))
    strategies.push_back(owned(row, GetParam()));
  expect_same_as_one_rank(load_model(kMlp), strategies);
}

TEST_P(Place, GradientsInTheirParametersPlaceAgree) {
  std::vector<plan::Strategy> strategies;
  for (const std::vector<std::size_t>& row : pairwise({4, 2, 4, kPlacements.size(), 3, 3, 2, 2, 2, 2})) {
    plan::Strategy s = owned(row, GetParam());
    s.stage = 3;
    s.ownership = row[1] == 1 ? plan::Ownership::rank : plan::Ownership::split;
    if (s.ownership == plan::Ownership::split) s.chunk_elems = Elems{904};
    s.global_batch = s.micro_batch * s.world_size;
    s.reuse_shard = true;
    strategies.push_back(s);
  }
  if (GetParam() != plan::Precision::fp32) return expect_same_as_one_rank(load_model(kMlp), strategies);
  // No masters to make parameters from again.
  for (const plan::Strategy& s : strategies) EXPECT_FALSE(plan::compile(load_model(kMlp), s)) << to_string(s);
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
    Bytes most{0};
    if (plans)
      for (const plan::Plan& plan : plans->classes) most = std::max(most, plan.arena_bytes[0]);
    return most;
  };
  std::string sha;
  bool held = false;
  bool reused = GetParam() == plan::Precision::fp32;
  for (std::size_t stage = 0; stage < 4; ++stage)
    for (std::size_t run_of_stage = 0; run_of_stage < subject.worlds.size() * 2; ++run_of_stage) {
      const std::size_t world = run_of_stage % subject.worlds.size();
      plan::Strategy s =
          strategy_of(subject, {world, stage, (stage + world) % kUnits.size(), world, stage % 2, 0, 0, 1});
      // What ranks own, and so what they need, differs.
      if (run_of_stage != world) {
        if (stage == 0 || world == 0) continue;
        if (stage == 1 && world == 1)
          s.partition = plan::Partition::parameter;
        else
          s.ownership = plan::Ownership::rank;
      }
      Bytes capacity = arena(s);
      s.placement = {};
      capacity = Bytes{(capacity.count() + 2 * arena(s).count()) / 3};
      s.reuse_shard = stage == 3 && s.has_masters() && s.accumulation() == 1;
      reused = reused || s.reuse_shard;
      if (world > 0) {
        s.placement.policy = plan::PlacementPolicy::automatic;
        s.placement.device_capacity = capacity;
      }
      const auto run =
          run_in_process(model, s, {.steps = subject.steps, .scalars = {}, .after_step = {}, .before_phase = {}});
      ASSERT_TRUE(run) << to_string(run.error());
      expect_as_planned(*run, subject.steps, to_string(s));
      for (const auto& rank : run->ranks) {
        if (world > 0) {
          EXPECT_LE(rank.peak[0], capacity) << to_string(s);
        }
      }
      for (const auto& unit : run->plans.of_rank(0).placed.held)
        held = held || std::ranges::find(unit, true) != unit.end();
      if (sha.empty()) sha = run->ranks[0].state_sha256;
      EXPECT_EQ(run->ranks[0].state_sha256, sha) << to_string(s);
    }
  EXPECT_TRUE(reused);
  EXPECT_TRUE(held) << "no unit ever stayed on the device between two uses";
}

INSTANTIATE_TEST_SUITE_P(All, Place,
                         testing::Values(plan::Precision::fp32, plan::Precision::bf16, plan::Precision::fp16),
                         [](const auto& param) { return std::string(to_string(param.param)); });

}  // namespace
}  // namespace shard
