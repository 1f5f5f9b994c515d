// Does a folded plan tell what the whole one does: extents and offsets, peaks, collectives and flops equal, times
// close?
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>

#include "sim/check/verify.h"
#include "sim/cluster/read_cluster.h"
#include "sim/compile/compile.h"
#include "sim/compile/tree.h"
#include "sim/engine/simulate.h"
#include "tests/compile/random_cases.h"

namespace shard::engine {
namespace {

using plan::MicroSteps;
using plan::PlanSet;
using plan::Strategy;

TEST(FoldedTree, HasTheNodesAndTheMicroStepsOfTheWhole) {
  for (std::int64_t micro_steps = 16; micro_steps < 3000; micro_steps += 1 + micro_steps / 37)
    for (const bool reproducible : {false, true})
      for (const bool direct : {false, true}) {
        SCOPED_TRACE(micro_steps);
        const plan::Tree whole = plan::make_tree(micro_steps, reproducible, direct);
        const plan::FoldedTree folded = plan::make_folded_tree(micro_steps, reproducible, direct);
        ASSERT_LT(folded.tree.steps.size(), whole.steps.size());
        ASSERT_EQ(folded.times.size(), folded.tree.steps.size());
        EXPECT_EQ(folded.tree.slots, whole.slots);
        EXPECT_EQ(folded.tree.root, whole.root);
        std::int64_t steps = 0, nodes = 0, whole_nodes = 0;
        for (std::size_t i = 0; i < folded.times.size(); ++i) {
          EXPECT_GE(folded.times[i], 1);
          steps += folded.times[i];
          nodes += folded.times[i] * static_cast<std::int64_t>(folded.tree.steps[i].merges.size());
        }
        for (const plan::TreeStep& step : whole.steps) whole_nodes += static_cast<std::int64_t>(step.merges.size());
        EXPECT_EQ(steps, micro_steps);
        EXPECT_EQ(nodes, whole_nodes);
      }
}

/// What waits beside each leaf as it is written, and which slot that is.
std::set<std::pair<std::set<std::int32_t>, std::int32_t>> largest_sets(const plan::Tree& tree) {
  std::set<std::pair<std::set<std::int32_t>, std::int32_t>> sets;
  std::set<std::int32_t> waiting;
  for (const plan::TreeStep& step : tree.steps) {
    EXPECT_TRUE(step.in_place || waiting.insert(step.slot).second) << "slot " << step.slot << " waits already";
    sets.insert({waiting, step.slot});
    for (const auto& [dst, src] : step.merges) {
      EXPECT_TRUE(waiting.contains(dst));
      EXPECT_EQ(waiting.erase(src), 1U);
    }
  }
  EXPECT_EQ(waiting, std::set<std::int32_t>{tree.root});
  std::erase_if(sets, [&](const auto& small) {
    for (const auto& large : sets)
      if (large != small && large.second == small.second && std::ranges::includes(large.first, small.first))
        return true;
    return false;
  });
  return sets;
}

TEST(FoldedTree, HasTheLargestSetsOfSlotsThatWaitTogether) {
  for (std::int64_t micro_steps = 16; micro_steps < 600; ++micro_steps) {
    SCOPED_TRACE(micro_steps);
    const auto whole = largest_sets(plan::make_tree(micro_steps, true, true));
    const auto folded = largest_sets(plan::make_folded_tree(micro_steps, true, true).tree);
    const auto top = std::ranges::max_element(whole, {}, [](const auto& set) { return set.first.size(); });
    EXPECT_TRUE(folded.contains(*top));
  }
}

/// (written, waiting): a slot is written while the other waits.
std::set<std::pair<std::int32_t, std::int32_t>> meetings(const plan::Tree& tree) {
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  std::set<std::int32_t> waiting;
  for (const plan::TreeStep& step : tree.steps) {
    for (const std::int32_t other : waiting) pairs.insert({step.slot, other});
    waiting.insert(step.slot);
    for (const auto& [dst, src] : step.merges) waiting.erase(src);
  }
  return pairs;
}

TEST(FoldedTree, WritesEverySlotWhileThoseWaitThatDoInTheWhole) {
  for (std::int64_t micro_steps = 16; micro_steps < 600; ++micro_steps)
    EXPECT_EQ(meetings(plan::make_tree(micro_steps, true, true)),
              meetings(plan::make_folded_tree(micro_steps, true, true).tree))
        << micro_steps;
}

void expect_equal_plans(const PlanSet& whole, const PlanSet& folded) {
  EXPECT_EQ(whole.hash, folded.hash);
  EXPECT_EQ(whole.class_of_rank, folded.class_of_rank);
  ASSERT_EQ(whole.classes.size(), folded.classes.size());
  for (std::size_t c = 0; c < whole.classes.size(); ++c) {
    const plan::Plan& a = whole.classes[c];
    const plan::Plan& b = folded.classes[c];
    EXPECT_TRUE(a.micro_step_times.empty());
    ASSERT_FALSE(b.micro_step_times.empty());
    for (int m = 0; m < kMemoryCount; ++m)
      EXPECT_EQ(a.arena_bytes[m].count(), b.arena_bytes[m].count()) << "memory " << m;
  }
}

void expect_near(double a, double b, double part, const char* what) {
  EXPECT_NEAR(a, b, part * std::max(std::abs(a), std::abs(b)) + 1e-12) << what;
}

void expect_equal_phases(const PhaseResult& a, const PhaseResult& b) {
  SCOPED_TRACE(to_string(a.phase));
  EXPECT_EQ(a.collectives, b.collectives);
  expect_near(a.model_flops.count(), b.model_flops.count(), 1e-12, "model flops");
  expect_near(a.compute_flops.count(), b.compute_flops.count(), 1e-12, "flops");
  expect_near(a.seconds.count(), b.seconds.count(), 0.03, "seconds");
  expect_near(a.compute_seconds.count(), b.compute_seconds.count(), 0.03, "computing");
  expect_near(a.communication_seconds.count(), b.communication_seconds.count(), 0.03, "communicating");
  for (int m = 0; m < kMemoryCount; ++m) {
    const auto i = static_cast<std::size_t>(m);
    EXPECT_EQ(a.memory[i].peak, b.memory[i].peak);
    EXPECT_EQ(a.memory[i].live_peak, b.memory[i].live_peak);
    EXPECT_EQ(a.memory[i].by_category, b.memory[i].by_category);
    EXPECT_EQ(a.memory[i].op, b.memory[i].op);
  }
}

TEST(Folded, TellsWhatTheWholePlanDoesForRandomStrategies) {
  const cluster::Cluster cpu = *cluster::read_cluster("cpu-local");
  const cluster::Cluster gpus = *cluster::read_cluster("a100-40gb-x8");
  constexpr std::array<std::int64_t, 8> kMicroSteps{16, 17, 23, 24, 32, 37, 48, 64};
  const char* more = std::getenv("SHARDSCOPE_FOLDED");
  const unsigned cases = more != nullptr ? static_cast<unsigned>(std::atoi(more)) : 60;
  unsigned folded_cases = 0;
  for (unsigned seed = 1; seed <= cases; ++seed) {
    plan::RandomCases random(seed);
    const plan::ModelPtr model = random.model();
    Strategy s = random.strategy(*model);
    s.global_batch = s.micro_batch * s.data_parallel() * kMicroSteps[seed % kMicroSteps.size()];
    if (seed % 3 == 0) s.device = plan::Device::cuda;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + plan::to_string(s));
    if (!plan::folds(s)) continue;
    const Result<PlanSet> whole = plan::compile(model, s);
    if (!whole) continue;
    ++folded_cases;
    const PlanSet folded = *plan::compile(model, s, MicroSteps::folded);
    expect_equal_plans(*whole, folded);
    const Result<void> verified = plan::verify(*whole);
    EXPECT_TRUE(verified) << to_string(verified.error());
    const cluster::Cluster& cluster = seed % 3 == 0 ? gpus : cpu;
    const Result<Simulation> a = simulate(*whole, cluster, {.steps = 3});
    const Result<Simulation> b = simulate(folded, cluster, {.steps = 3});
    ASSERT_TRUE(a && b);
    for (std::size_t c = 0; c < a->classes.size(); ++c) {
      EXPECT_EQ(a->classes[c].collectives, b->classes[c].collectives);
      ASSERT_EQ(a->classes[c].phases.size(), b->classes[c].phases.size());
      for (std::size_t p = 0; p < a->classes[c].phases.size(); ++p)
        expect_equal_phases(a->classes[c].phases[p], b->classes[c].phases[p]);
    }
  }
  EXPECT_GT(folded_cases, cases / 3);
}

// A plan that a machine cannot hold is refused before it is begun; to predict the same step takes a short one.
TEST(Folded, AMillionMicroStepsArePredictedAndNotPlannedWhole) {
  const plan::ModelPtr model = plan::small_gpt2();
  Strategy s{.global_batch = std::int64_t{1} << 20, .sequence = 8};
  const Result<PlanSet> whole = plan::compile(model, s);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, Errc::contradiction);
  EXPECT_NE(whole.error().help.find("--global-batch "), std::string::npos);
  const Result<PlanSet> folded = plan::compile(model, s, MicroSteps::folded);
  ASSERT_TRUE(folded) << to_string(folded.error());
  EXPECT_LT(folded->classes.front().find(Phase::steady_step)->ops.size(), 50'000U);
  s.placement.policy = plan::PlacementPolicy::automatic;
  s.placement.device_capacity = Bytes{1 << 20};
  const Result<PlanSet> automatic = plan::compile(model, s, MicroSteps::folded);
  ASSERT_FALSE(automatic);
  EXPECT_NE(automatic.error().help.find("--placement"), std::string::npos);
}

}  // namespace
}  // namespace shard::engine
