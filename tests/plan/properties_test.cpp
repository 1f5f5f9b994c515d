// What holds for every plan, whatever the model and the strategy?
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/plan/effects.h"
#include "sim/plan/verify.h"
#include "tests/plan/random_cases.h"

namespace shard::plan {
namespace {

constexpr unsigned kCases = 300;

template <class Check>
void for_random_plans(unsigned first_seed, unsigned cases, Check check) {
  for (unsigned seed = first_seed; seed < first_seed + cases; ++seed) {
    RandomCases random(seed);
    const ModelPtr model = random.model();
    const Strategy strategy = random.strategy(*model);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + model->name + ' ' + to_string(strategy));
    check(model, strategy, compiled(model, strategy));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PlanProperties, EveryPlanPassesTheVerifier) {
  for_random_plans(1, kCases, [](const ModelPtr&, const Strategy&, const PlanSet& plans) {
    const Result<void> ok = verify(plans);
    EXPECT_TRUE(ok) << to_string(ok.error());
  });
}

}  // namespace
}  // namespace shard::plan
