// Is what an evaluation says the loss of those batches, by any strategy, and does it leave the run as it was?
#include <gtest/gtest.h>

#include <vector>

#include "tests/agreement/random_runs.h"
#include "tests/daily.h"

namespace shard {
namespace {

constexpr std::int64_t kSteps = 3;

double mean(const std::vector<float>& losses) {
  double sum = 0;
  for (const float loss : losses) sum += static_cast<double>(loss) / static_cast<double>(losses.size());
  return sum;
}

/// Of the same batches as training, from the first on.
train::SessionOptions evaluated(train::SessionOptions session) {
  session.evaluation = {.every = 2, .steps = kSteps};
  return session;
}

train::SessionOptions that_learns_nothing(unsigned seed) {
  train::SessionOptions session = random_session(seed);
  session.steps = kSteps;
  session.scalars.learning_rate = 0;
  return session;
}

void expect_evaluates(unsigned seed, plan::Device device, int strategies) {
  RandomClass drawn(seed);
  for (int ran = 0, tries = 0; ran < strategies && tries < 50 * strategies; ++tries) {
    std::optional<plan::Strategy> strategy = drawn.draw(device);
    if (!strategy) continue;
    ++ran;
    const std::string what = "seed " + std::to_string(seed) + ": " + drawn.model()->name + ' ' + to_string(*strategy);
    const auto plain = run_in_process(drawn.model(), *strategy, random_session(seed));
    ASSERT_TRUE(plain) << what << ": " << to_string(plain.error());
    strategy->evaluates = true;
    const auto run = run_in_process(drawn.model(), *strategy, evaluated(random_session(seed)));
    ASSERT_TRUE(run) << what << ": " << to_string(run.error());
    EXPECT_EQ(run->ranks[0].state_sha256, plain->ranks[0].state_sha256) << what << ": evaluating changes numbers";
    EXPECT_EQ(run->ranks[0].losses, plain->ranks[0].losses) << what;
    EXPECT_EQ(run->ranks[0].peak, plain->ranks[0].peak) << what << ": evaluating needs memory";
    expect_as_planned(*run, 3, what, 2 * kSteps);  // behind steps 2 and 3

    // Nothing is learned, nothing dropped: the loss that training says of these batches.
    const auto still = run_in_process(drawn.model(), *strategy, evaluated(that_learns_nothing(seed)));
    ASSERT_TRUE(still) << what << ": " << to_string(still.error());
    plan::Strategy without = *strategy;
    without.dropout = 0;
    const auto said = run_in_process(drawn.model(), without, that_learns_nothing(seed));
    ASSERT_TRUE(said) << what << ": " << to_string(said.error());
    ASSERT_EQ(still->ranks[0].evaluations.size(), 2U) << what;
    for (const train::SessionResult& rank : still->ranks)
      for (const train::EvaluationResult& e : rank.evaluations) EXPECT_EQ(e.loss, mean(said->ranks[0].losses)) << what;
    EXPECT_EQ(still->ranks[0].evaluations[0].step, 2) << what;
    EXPECT_EQ(still->ranks[0].evaluations[1].step, kSteps) << what;
  }
}

class Evaluated : public testing::TestWithParam<unsigned> {};

TEST_P(Evaluated, SaysTheLossOfThoseBatchesAndLeavesTheRunAsItWas) {
  const unsigned group = daily::pick(GetParam(), EVALUATED_GROUPS, 20);
  const std::vector<unsigned> ten{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const unsigned i : daily::part_of(ten, EVALUATED_GROUPS < 20U ? 3 : 1))
    expect_evaluates(10 * group + i, plan::Device::cpu, 2);
}
TEST_P(Evaluated, OnADeviceToo) {
  expect_evaluates(1000 + daily::pick(GetParam(), EVALUATED_GROUPS, 20), plan::Device::cuda, 2);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Evaluated, testing::Range(0U, EVALUATED_GROUPS));

}  // namespace
}  // namespace shard
