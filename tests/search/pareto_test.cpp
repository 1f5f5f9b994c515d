// Is on the front what no other one beats, and nothing else?
#include "sim/search/pareto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace shard {
namespace {

bool beats(const Tradeoff& a, const Tradeoff& b) {
  return a.cost <= b.cost && a.gain >= b.gain && (a.cost < b.cost || a.gain > b.gain);
}

// Few different numbers, so that many answers are equal in one of them or both.
TEST(ParetoFront, IsWhatNothingBeats) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int most = 1 + round % 12;
    std::uniform_int_distribution<int> number(0, most);
    std::vector<Tradeoff> answers(static_cast<std::size_t>(round % 40));
    for (Tradeoff& each : answers) each = {.cost = number(random) - 3.0, .gain = number(random) * 0.5};
    const std::vector<bool> front = pareto_front(answers);
    ASSERT_EQ(front.size(), answers.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const bool beaten = std::ranges::any_of(answers, [&](const Tradeoff& other) { return beats(other, answers[i]); });
      EXPECT_EQ(front[i], !beaten) << "round " << round << ", answer " << i;
    }
  }
}

}  // namespace
}  // namespace shard
