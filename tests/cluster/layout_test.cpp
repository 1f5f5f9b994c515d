// Do ranks land on the hosts and devices that they should?
#include <gtest/gtest.h>

#include "sim/cluster/cluster.h"

namespace shard::cluster {
namespace {

Cluster eight_per_host() {
  Cluster c;
  c.name = "test";
  c.devices_per_host = 8;
  c.inter_host = Link{};
  return c;
}

TEST(Layout, TakesAsManyHostsAsTheRanksNeed) {
  EXPECT_EQ(layout(eight_per_host(), 1).hosts, 1);
  EXPECT_EQ(layout(eight_per_host(), 8).hosts, 1);
  EXPECT_EQ(layout(eight_per_host(), 9).hosts, 2);
  EXPECT_EQ(layout(eight_per_host(), 16384).hosts, 2048);
  EXPECT_EQ(layout(eight_per_host(), 16384).ranks_per_device, 1);
}

TEST(Layout, RanksDivideTheDevicesOfAFixedNumberOfHosts) {
  Cluster c = eight_per_host();
  c.hosts = 1;
  c.devices_per_host = 2;
  c.ranks_share_device = true;
  EXPECT_EQ(layout(c, 2).ranks_per_device, 1);
  EXPECT_EQ(layout(c, 3).ranks_per_device, 2);
  EXPECT_EQ(layout(c, 8).ranks_per_device, 4);
  EXPECT_TRUE(check_ranks(c, 8));
}

TEST(CheckRanks, RefusesMoreRanksThanDevices) {
  Cluster c = eight_per_host();
  c.hosts = 2;
  EXPECT_TRUE(check_ranks(c, 16));
  const auto r = check_ranks(c, 17);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Errc::contradiction);
  EXPECT_NE(r.error().help.find("--world-size 16"), std::string::npos);
}

TEST(CheckRanks, RefusesSeveralHostsWithoutALinkBetweenThem) {
  Cluster c = eight_per_host();
  c.inter_host.reset();
  EXPECT_TRUE(check_ranks(c, 8));
  const auto r = check_ranks(c, 9);
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().help.find("inter_host_link"), std::string::npos);
}

}  // namespace
}  // namespace shard::cluster
