// Do random strategies of one class, with every option beside every other, train to the same bits as planned?
#include <gtest/gtest.h>

#include "tests/agreement/random_runs.h"
#include "tests/daily.h"

namespace shard {
namespace {

constexpr unsigned kClasses = 12;

class RandomClasses : public testing::TestWithParam<unsigned> {};

TEST_P(RandomClasses, Agree) {
  const unsigned group = daily::pick(GetParam(), RANDOM_CLASS_GROUPS, 100);
  RandomRuns all;
  for (unsigned i = 0; i < kClasses; ++i) {
    const RandomRuns runs = expect_random_class_agrees(kClasses * group + i, 5);
    all.ran += runs.ran;
    all.compared += runs.compared;
  }
  EXPECT_GE(all.compared, 3 * static_cast<int>(kClasses));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomClasses, testing::Range(0U, RANDOM_CLASS_GROUPS));

}  // namespace
}  // namespace shard
