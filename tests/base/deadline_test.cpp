// Deadlines that do not overflow, and their words.
#include "traces/base/deadline.h"

#include <gtest/gtest.h>

#include <limits>

namespace shard {
namespace {

TEST(Deadline, TheLargestOneLiesInTheFuture) {
  const auto now = std::chrono::steady_clock::now();
  for (const double seconds : {1e10, 9e18, 1e300, std::numeric_limits<double>::infinity()})
    EXPECT_GT(now + deadline_of(seconds), now + std::chrono::years(9)) << seconds;
  EXPECT_EQ(deadline_of(3), std::chrono::seconds{3});
}

TEST(Deadline, BeyondAnyClockIsNone) {
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(deadline_after(now, 2.5), now + std::chrono::milliseconds{2500});
  EXPECT_EQ(deadline_after(now, 0), now);
  for (const double seconds : {1e10, 1e300, std::numeric_limits<double>::infinity()})
    EXPECT_EQ(deadline_after(now, seconds), std::nullopt) << seconds;
}

TEST(Deadline, IsSaidInSeconds) {
  EXPECT_EQ(in_seconds(std::chrono::seconds{3}), "3 s");
  EXPECT_EQ(in_seconds(std::chrono::milliseconds{250}), "0.25 s");
}

TEST(Deadline, NamesRanks) {
  EXPECT_EQ(ranks_have({1}), "rank 1 has");
  EXPECT_EQ(ranks_have({1, 2}), "ranks 1, 2 have");
  EXPECT_EQ(ranks_have({}), "another rank has");
}

}  // namespace
}  // namespace shard
