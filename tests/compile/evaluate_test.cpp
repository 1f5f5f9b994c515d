// Is phase evaluate a step's loss and nothing more, for any strategy, and does it cost the plan nothing?
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <variant>
#include <vector>

#include "sim/check/verify.h"
#include "tests/compile/random_cases.h"
#include "tests/daily.h"

namespace shard::plan {
namespace {

std::int64_t computes(const PhaseOps& phase, bool forward_alone) {
  return std::ranges::count_if(phase.ops, [&](const Op& op) {
    const auto* c = std::get_if<Compute>(&op.action);
    return c != nullptr && op.part != Part::recompute && (!forward_alone || c->direction == Direction::forward);
  });
}

void expect_forward_parts(unsigned seed, int strategies) {
  RandomCases random(seed);
  for (int tried = 0; tried < strategies;) {
    const ModelPtr model = random.model();
    Strategy strategy = random.strategy(*model);
    const Result<PlanSet> trains = compile(model, strategy);
    if (!trains) continue;
    ++tried;
    strategy.evaluates = true;
    SCOPED_TRACE(model->name + ' ' + to_string(strategy));
    const Result<PlanSet> plans = compile(model, strategy);
    ASSERT_TRUE(plans) << to_string(plans.error());
    const Result<void> sound = verify(*plans);
    ASSERT_TRUE(sound) << to_string(sound.error());
    EXPECT_NE(plans->hash, trains->hash);
    for (std::size_t c = 0; c < plans->classes.size(); ++c) {
      const Plan& plan = plans->classes[c];
      EXPECT_TRUE(std::ranges::equal(plan.arena_bytes, trains->classes[c].arena_bytes));
      const PhaseOps& evaluation = *plan.find(Phase::evaluate);
      EXPECT_EQ(computes(evaluation, false), computes(*plan.find(Phase::steady_step), true));
      for (const Op& op : evaluation.ops) EXPECT_TRUE(op.part != Part::optimizer && op.part != Part::reduce) << op.name;
    }
  }
}

TEST(Evaluate, IsTheForwardPartOfAnyStepAndTakesNoMemory) {
  std::vector<unsigned> seeds(30);
  std::iota(seeds.begin(), seeds.end(), 17U);
  for (const unsigned seed : daily::part_of(seeds, 3)) expect_forward_parts(seed, 10);
}

}  // namespace
}  // namespace shard::plan
