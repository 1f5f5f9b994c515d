// Are the ring equations the ones that collective.h states, and do they behave?
#include "sim/cost/collective.h"

#include <gtest/gtest.h>

#include <random>

namespace shard::cost {
namespace {

constexpr Collective kAll[] = {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
                               Collective::broadcast, Collective::reduce};

/// Round figures: 1 us a call, 2 us a step inside, 10 us between hosts, 100 and 50 GB/s, 4 devices a host.
cluster::Cluster round_cluster() {
  cluster::Cluster c;
  c.devices_per_host = 4;
  c.intra_host = {Seconds{1e-6}, Seconds{2e-6}, BytesPerSecond{100e9}};
  c.inter_host = cluster::Link{Seconds{1e-6}, Seconds{10e-6}, BytesPerSecond{50e9}};
  return c;
}

double microseconds(Collective kind, Bytes full, std::int32_t ranks, const cluster::Cluster& c = round_cluster()) {
  return collective_time(kind, full, c, cluster::layout(c, ranks)).count() * 1e6;
}

TEST(Collective, OneRankCostsNothing) {
  for (const Collective kind : kAll) EXPECT_EQ(microseconds(kind, Bytes{1 << 30}, 1), 0);
}

TEST(Collective, FourRanksOfOneHost) {
  const Bytes s{4'000'000};  // 40 us at 100 GB/s
  // t0 + (n - 1) a + (n - 1) / n S / B = 1 + 3 * 2 + 3 / 4 * 40
  EXPECT_DOUBLE_EQ(microseconds(Collective::all_gather, s, 4), 37);
  EXPECT_DOUBLE_EQ(microseconds(Collective::reduce_scatter, s, 4), 37);
  // t0 + 2 (n - 1) a + 2 (n - 1) / n S / B = 1 + 12 + 60
  EXPECT_DOUBLE_EQ(microseconds(Collective::all_reduce, s, 4), 73);
  // t0 + (n - 1) a + S / B = 1 + 6 + 40
  EXPECT_DOUBLE_EQ(microseconds(Collective::broadcast, s, 4), 47);
  EXPECT_DOUBLE_EQ(microseconds(Collective::reduce, s, 4), 47);
}

TEST(Collective, EightRanksOfTwoHosts) {
  const Bytes s{4'000'000};  // 80 us at 50 GB/s, the slower link
  // t0 + (n - N) a + (N - 1) A + (n - 1) / n S / B = 1 + 6 * 2 + 1 * 10 + 7 / 8 * 80
  EXPECT_DOUBLE_EQ(microseconds(Collective::all_gather, s, 8), 93);
  // t0 + 2 (n - N) a + 2 (N - 1) A + 2 (n - 1) / n S / B = 1 + 24 + 20 + 140
  EXPECT_DOUBLE_EQ(microseconds(Collective::all_reduce, s, 8), 185);
}

TEST(Collective, OneRankAHostUsesOnlyTheNetwork) {
  cluster::Cluster c = round_cluster();
  c.devices_per_host = 1;
  c.inter_host->bus_bandwidth = BytesPerSecond{200e9};
  // t0 + (N - 1) A + (n - 1) / n S / B = 1 + 10 + 1 / 2 * 20: the inner link's 100 GB/s does not count
  EXPECT_DOUBLE_EQ(microseconds(Collective::all_gather, Bytes{4'000'000}, 2, c), 21);
}

TEST(Collective, AllReduceIsReduceScatterThenAllGatherWithOneCallSaved) {
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    const Bytes s{static_cast<std::int64_t>(random()) + 1};
    const std::int32_t n = 2 + static_cast<std::int32_t>(random() % 60);
    EXPECT_NEAR(microseconds(Collective::all_reduce, s, n) + 1,
                microseconds(Collective::all_gather, s, n) + microseconds(Collective::reduce_scatter, s, n), 1e-6);
  }
}

TEST(Collective, MoreBytesOrLessBandwidthIsNeverFaster) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    cluster::Cluster c = round_cluster();
    const std::int32_t n = 1 + static_cast<std::int32_t>(random() % 64);
    const Bytes s{static_cast<std::int64_t>(random())};
    const Collective kind = kAll[random() % std::size(kAll)];
    const double t = microseconds(kind, s, n, c);
    EXPECT_LE(t, microseconds(kind, s + Bytes{static_cast<std::int64_t>(random() % 1000)}, n, c));
    c.intra_host.bus_bandwidth = BytesPerSecond{c.intra_host.bus_bandwidth.count() * 0.3};
    EXPECT_LE(t, microseconds(kind, s, n, c));
    c.inter_host->latency = 2 * c.inter_host->latency;
    EXPECT_LE(t, microseconds(kind, s, n, c));
  }
}

TEST(Collective, H100AllReduceMatchesTheWorkedCheckOfModelsMd) {
  cluster::Cluster c;
  c.devices_per_host = 8;
  c.intra_host = {Seconds{8.4e-6}, Seconds{3.4e-6}, BytesPerSecond{370.8e9}};
  EXPECT_NEAR(microseconds(Collective::all_reduce, Bytes{0}, 8, c), 56, 0.1);
  const double s = 64e9;
  EXPECT_NEAR(s / (microseconds(Collective::all_reduce, Bytes{64'000'000'000}, 8, c) * 1e-6) / 1e9, 212, 0.5);
}

}  // namespace
}  // namespace shard::cost
