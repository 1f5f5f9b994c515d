// Does a verdict count what lies outside of the allocator, and only where there is a GPU?
#include "sim/cluster/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/cluster/read_cluster.h"

namespace shard::cluster {
namespace {

using testing::HasSubstr;

constexpr ByteRange kOutside{Bytes{100}, Bytes{300}};

Verdict of(std::int64_t peak, double uncertainty = 0) {
  return verdict_of(Bytes{peak}, {.capacity = Bytes{1000}, .outside = kOutside, .uncertainty = uncertainty});
}

TEST(Verdict, FitsWithTheHighestOfWhatLiesOutside) {
  EXPECT_EQ(of(700), Verdict::fits);
  EXPECT_EQ(of(701), Verdict::tight);
}

TEST(Verdict, DoesNotFitOnlyWithTheLowest) {
  EXPECT_EQ(of(900), Verdict::tight);
  EXPECT_EQ(of(901), Verdict::does_not_fit);
}

TEST(Verdict, IsTightWithinTheUncertaintyOfThePeak) {
  EXPECT_EQ(of(600, 0.1), Verdict::fits);
  EXPECT_EQ(of(640, 0.1), Verdict::tight);
  EXPECT_EQ(of(900, 0.1), Verdict::tight) << "uncertainty alone never says that it does not fit";
}

TEST(Verdict, FitsWithoutALimit) {
  EXPECT_EQ(verdict_of(Bytes{1} * (std::int64_t{1} << 60), {.capacity = {}, .outside = kOutside}), Verdict::fits);
}

TEST(Account, SumsWhatIsInsideAndOutside) {
  const Room room{.capacity = Bytes{80} * (1 << 30), .outside = {Bytes{512 << 20}, Bytes{1536 << 20}}};
  EXPECT_EQ(account_of(Bytes{std::int64_t{10} << 30}, room),
            "10.00 GiB + 512.00 MiB to 1.50 GiB outside of the allocator = 10.50 to 11.50 GiB of 80.00 GiB device "
            "memory");
  EXPECT_EQ(account_of(Bytes{std::int64_t{10} << 30}, {.capacity = room.capacity}),
            "10.00 GiB of 80.00 GiB device memory");
}

Cluster known(const char* name) {
  const Result<Cluster> cluster = read_cluster(name);
  EXPECT_TRUE(cluster) << name;
  return cluster ? *cluster : Cluster{};
}

TEST(OutsideAllocator, IsNothingOnProcessors) {
  EXPECT_EQ(outside_allocator(known("cpu-local"), 2), ByteRange{});
}

TEST(OutsideAllocator, HasNcclWithSeveralRanksOnly) {
  const Cluster cluster = known("h100-80gb-x8");
  const ByteRange one = outside_allocator(cluster, 1);
  const ByteRange two = outside_allocator(cluster, 2);
  EXPECT_GT(one.low, Bytes{0});
  EXPECT_LT(one.low, one.high);
  EXPECT_GT(two.low, one.low);
  EXPECT_GT(two.high, one.high);
  EXPECT_EQ(outside_allocator(cluster, 1024), two);
}

// The figures that outside.cpp cites, in MiB, on the cluster whose card is most like theirs: bounds have to hold them.
TEST(OutsideAllocator, HoldsWhatWasSeen) {
  struct Seen {
    const char* cluster;
    std::int32_t ranks;
    double mib;
  };
  for (const Seen& seen :
       {Seen{"a100-40gb-x8", 1, 500}, Seen{"a100-80gb-x8", 1, 533}, Seen{"h100-80gb-pcie-x8", 1, 601},
        Seen{"h100-80gb-x8", 1, 754}, Seen{"a100-80gb-x8", 2, 789}, Seen{"a100-80gb-x8", 4, 1526},
        Seen{"h100-80gb-x8", 8, 1011}}) {
    const ByteRange range = outside_allocator(known(seen.cluster), seen.ranks);
    const double mib = 1 << 20;
    EXPECT_LE(static_cast<double>(range.low.count()) / mib, seen.mib) << seen.cluster << ", " << seen.ranks;
    EXPECT_GE(static_cast<double>(range.high.count()) / mib, seen.mib) << seen.cluster << ", " << seen.ranks;
  }
}

TEST(OutsideAllocator, LeavesOutAContextThatTheCapacityLeavesOut) {
  Cluster cluster = known("a100-40gb-x8");
  cluster.device_overhead = Bytes{1};
  EXPECT_EQ(outside_allocator(cluster, 1), ByteRange{});
  EXPECT_GT(outside_allocator(cluster, 2).low, Bytes{0});
}

TEST(OutsideAllocator, IsWiderWhereTheCardIsNotKnown) {
  Cluster cluster = known("a100-40gb-x8");
  const ByteRange its = outside_allocator(cluster, 2);
  cluster.card.reset();
  const ByteRange any = outside_allocator(cluster, 2);
  EXPECT_LE(any.low, its.low);
  EXPECT_GE(any.high, its.high);
}

TEST(OutsideRows, EachSaysWhereItIsFrom) {
  for (const OutsideRow& row : outside_rows()) {
    EXPECT_THAT(std::string(row.source), HasSubstr("github.com/"));
    EXPECT_LT(row.bytes.low, row.bytes.high);
    EXPECT_LE(row.from, row.to);
  }
}

}  // namespace
}  // namespace shard::cluster
