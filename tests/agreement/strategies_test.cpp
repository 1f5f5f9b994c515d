// Do all strategies of one model train to the same bits, in exactly the memory and with exactly the calls planned?
#include <gtest/gtest.h>

#include <map>

#include "sim/model/read_model.h"
#include "sim/plan/effects.h"
#include "tests/agreement/in_process_run.h"

namespace shard {
namespace {

using plan::Strategy;
using plan::UnitKind;

struct Totals {
  std::map<Collective, CollectiveCount> by_kind;
};

/// What the plan says a run of `steps` steps with a digest communicates.
Totals planned(const plan::Plan& plan, std::int64_t steps) {
  Totals totals;
  for (const plan::PhaseOps& phase : plan.phases) {
    const std::int64_t times = phase.phase == Phase::steady_step ? steps - 1 : 1;
    for (const plan::Op& op : phase.ops)
      if (const auto sends = plan::effects(plan, op).sends) {
        totals.by_kind[sends->kind].calls += times;
        totals.by_kind[sends->kind].bytes += sends->bytes * times;
      }
  }
  return totals;
}

void expect_as_planned(const InProcessRun& run, std::int64_t steps, const std::string& what) {
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const plan::Plan& plan = run.plans.of_rank(static_cast<std::int32_t>(rank));
    EXPECT_EQ(run.ranks[rank].peak.count(), plan.arena_bytes[0].count()) << what << " rank " << rank;
    Totals expected = planned(plan, steps);
    for (int k = 0; k < kCollectiveCount; ++k) {
      const auto kind = static_cast<Collective>(k);
      EXPECT_EQ(run.ranks[rank].collectives[kind], expected.by_kind[kind])
          << what << " rank " << rank << ' ' << to_string(kind);
    }
  }
}

std::shared_ptr<const model::Model> load(const std::string& name) {
  Result<model::Model> model = model::read_model(name);
  EXPECT_TRUE(model) << (model ? "" : to_string(model.error()));
  return std::make_shared<const model::Model>(std::move(*model));
}

struct Case {
  std::int32_t world;
  std::int32_t stage;
  UnitKind unit;
  plan::Recompute recompute;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (std::int32_t world : {1, 2, 4})
    for (std::int32_t stage : {0, 1, 2, 3})
      for (UnitKind unit : {UnitKind::tensor, UnitKind::bucket, UnitKind::module, UnitKind::chunk})
        for (plan::Recompute recompute : {plan::Recompute::none, plan::Recompute::block})
          all.push_back({world, stage, unit, recompute});
  return all;
}

TEST(Strategies, NanoTrainsToTheSameBitsWhateverTheStrategy) {
  const auto model = load("gpt2-nano");
  std::string sha;
  for (const Case& c : cases()) {
    Strategy s{.world_size = c.world,
               .stage = c.stage,
               .unit = c.unit,
               .chunk_elems = Elems{100'000},
               .micro_batch = 1,
               .global_batch = 4,
               .sequence = 16,
               .recompute = c.recompute};
    const std::string what = to_string(s);
    const auto run =
        run_in_process(model, s, {.steps = 2, .scalars = {}, .seed = 7, .after_step = {}, .before_phase = {}});
    ASSERT_TRUE(run) << what << ": " << to_string(run.error());
    expect_as_planned(*run, 2, what);
    if (sha.empty()) sha = run->ranks[0].state_sha256;
    EXPECT_EQ(run->ranks[0].state_sha256, sha) << what;
  }
}

}  // namespace
}  // namespace shard
