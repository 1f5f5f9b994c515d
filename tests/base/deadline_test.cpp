// Deadlines that do not overflow, and their words.
#include "traces/base/deadline.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace shard {
namespace {

TEST(Deadline, TheLargestOneLiesInTheFuture) {
  const auto deadline = deadline_of(std::numeric_limits<std::int64_t>::max());
  const auto now = std::chrono::steady_clock::now();
  EXPECT_GT(now + deadline, now);
  EXPECT_EQ(deadline_of(3), std::chrono::seconds{3});
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
