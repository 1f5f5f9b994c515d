// Which units does a bucket reduce together?
#include "sim/compile/passes/bucket.h"

#include <gtest/gtest.h>

#include <random>

namespace shard::plan {
namespace {

std::vector<std::int32_t> ids(const Bucket::Call& call) {
  std::vector<std::int32_t> result;
  for (UnitId id : call) result.push_back(id.value);
  return result;
}
using Ids = std::vector<std::int32_t>;

TEST(Bucket, OfNoSizeReducesEveryUnitByItself) {
  Bucket bucket(Bytes{0});
  for (std::int32_t u = 0; u < 3; ++u) {
    const auto calls = bucket.add(UnitId{u}, Bytes{100}, 1);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(ids(calls[0]), Ids{u});
  }
  EXPECT_TRUE(bucket.rest().empty());
}

TEST(Bucket, IsFlushedByTheUnitThatDoesNotFitAndByTheOneThatFillsIt) {
  Bucket bucket(Bytes{100});
  EXPECT_TRUE(bucket.add(UnitId{0}, Bytes{40}, 1).empty());
  EXPECT_TRUE(bucket.add(UnitId{1}, Bytes{59}, 1).empty());
  auto calls = bucket.add(UnitId{2}, Bytes{50}, 1);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(ids(calls[0]), (Ids{0, 1}));
  calls = bucket.add(UnitId{3}, Bytes{50}, 1);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(ids(calls[0]), (Ids{2, 3}));
  EXPECT_TRUE(bucket.rest().empty());
}

TEST(Bucket, AUnitAsLargeGoesAloneAndLeavesTheRestWaiting) {
  Bucket bucket(Bytes{100});
  EXPECT_TRUE(bucket.add(UnitId{0}, Bytes{10}, 1).empty());
  const auto calls = bucket.add(UnitId{1}, Bytes{100}, 1);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(ids(calls[0]), Ids{1});
  EXPECT_EQ(ids(bucket.rest()), Ids{0});
}

TEST(Bucket, ReducesEachUnitOnceWithinItsLimits) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto limit = static_cast<std::int64_t>(random() % 500);
    Bucket bucket(Bytes{limit});
    std::vector<std::int64_t> sizes;
    std::vector<int> times(300, 0);
    const auto check = [&](const Bucket::Call& call) {
      std::int64_t bytes = 0;
      for (UnitId id : call) {
        bytes += sizes[static_cast<std::size_t>(id.value)];
        ++times[static_cast<std::size_t>(id.value)];
      }
      EXPECT_LE(call.size(), kCallSegments);
      EXPECT_TRUE(call.size() <= 1 || bytes <= limit);
    };
    for (std::int32_t u = 0; u < 300; ++u) {
      sizes.push_back(static_cast<std::int64_t>(1 + random() % (round % 2 == 0 ? 5 : 200)));
      for (const Bucket::Call& call : bucket.add(UnitId{u}, Bytes{sizes.back()}, 1)) check(call);
    }
    check(bucket.rest());
    EXPECT_EQ(times, std::vector<int>(300, 1));
  }
}

}  // namespace
}  // namespace shard::plan
