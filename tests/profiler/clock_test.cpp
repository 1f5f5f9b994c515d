// The map between clocks: right within its own bound, whatever the device's clock did.
#include "profiler/clock/clock_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

namespace shard::profiler {
namespace {

/// The device's clock at a moment of the host's.
using DeviceClock = std::function<std::int64_t(std::int64_t)>;

std::vector<ClockLook> looks_at(const DeviceClock& device, std::int64_t from, std::int64_t to, std::int64_t every,
                                std::mt19937_64& random) {
  std::vector<ClockLook> looks;
  for (std::int64_t host = from; host <= to; host += every) {
    const auto before = static_cast<std::int64_t>(random() % 2000), behind = static_cast<std::int64_t>(random() % 2000);
    looks.push_back({device(host), host - before, host + behind});
  }
  return looks;
}

/// The worst error in units of the bound that came with it, over moments between the looks.
void expect_within(const DeviceClock& device, const std::vector<ClockLook>& looks, std::mt19937_64& random) {
  const ClockMap map(looks);
  const std::int64_t first = looks.front().host_behind_ns, last = looks.back().host_before_ns;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t truth = first + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(last - first));
    const HostTime found = map.host(device(truth));
    ASSERT_LE(std::abs(found.time_ns - truth), found.bound_ns) << "at " << truth;
    ASSERT_LE(found.bound_ns, map.bound_ns());
  }
}

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(ClockMap, IsExactButForTheReadingWhereTheDistanceStaysTheSame) {
  std::mt19937_64 random(1);
  const DeviceClock device = [](std::int64_t host) { return host + 123 * kSecond; };
  const std::vector<ClockLook> looks = looks_at(device, kSecond, 11 * kSecond, kSecond / 10, random);
  expect_within(device, looks, random);
  EXPECT_LE(ClockMap(looks).bound_ns(), 3 * 4001);
}

TEST(ClockMap, HoldsItsBoundUnderDrift) {
  std::mt19937_64 random(2);
  for (const double drift : {-1e-3, -5e-5, 2e-5, 1e-3}) {
    const DeviceClock device = [&](std::int64_t host) {
      return 7 * kSecond + static_cast<std::int64_t>(static_cast<double>(host) * (1 + drift));
    };
    expect_within(device, looks_at(device, kSecond, 6 * kSecond, kSecond / 20, random), random);
  }
}

TEST(ClockMap, HoldsItsBoundWhereTheClockIsSetForwardAndBack) {
  std::mt19937_64 random(3);
  for (const std::int64_t step : std::vector<std::int64_t>{-kSecond / 2, -1'000'000, 50'000, 2 * kSecond}) {
    const DeviceClock device = [&](std::int64_t host) { return host + (host > 3 * kSecond + 7'777 ? step : 0); };
    expect_within(device, looks_at(device, kSecond, 6 * kSecond, kSecond / 10, random), random);
  }
}

TEST(ClockMap, HoldsItsBoundOverManyRandomClocks) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    struct Step {
      std::int64_t at, by;
    };
    std::vector<Step> steps;
    // One at most between two looks, which is what the map assumes.
    for (std::int64_t at = kSecond / 2; at < 5 * kSecond;
         at += kSecond / 10 * static_cast<std::int64_t>(1 + random() % 20))
      steps.push_back({at + static_cast<std::int64_t>(random() % (kSecond / 10)),
                       static_cast<std::int64_t>(random() % 2'000'000) - 1'000'000});
    const DeviceClock device = [&](std::int64_t host) {
      std::int64_t time = host;
      for (const Step& s : steps) time += host > s.at ? s.by : 0;
      return time;
    };
    expect_within(device, looks_at(device, 0, 5 * kSecond, kSecond / 10, random), random);
  }
}

TEST(ClockMap, SaysThatItsBoundGrowsBeyondTheLooks) {
  std::mt19937_64 random(4);
  const DeviceClock device = [](std::int64_t host) {
    return static_cast<std::int64_t>(static_cast<double>(host) * (1 + 4e-5));
  };
  const ClockMap map(looks_at(device, kSecond, 2 * kSecond, kSecond / 10, random));
  for (const std::int64_t truth : {kSecond / 2, 4 * kSecond, 20 * kSecond}) {
    const HostTime found = map.host(device(truth));
    EXPECT_LE(std::abs(found.time_ns - truth), found.bound_ns) << truth;
  }
  EXPECT_GT(map.host(20 * kSecond).bound_ns, map.host(4 * kSecond).bound_ns);
}

TEST(ClockMap, KeepsTheOrderOfMoments) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    const DeviceClock device = [](std::int64_t host) { return host + 5 * kSecond; };
    const ClockMap map(looks_at(device, kSecond, kSecond + 40'000, 1'000, random));
    std::int64_t last = INT64_MIN;
    for (std::int64_t host = kSecond; host < kSecond + 40'000; host += 50) {
      const std::int64_t found = map.host(device(host)).time_ns;
      ASSERT_GE(found, last) << seed << " " << host;
      last = found;
    }
  }
}

TEST(ClockMap, KnowsNothingWithoutALook) {
  const ClockMap map({});
  EXPECT_FALSE(map.is_known());
  EXPECT_EQ(map.host(42).time_ns, 42);
}

TEST(ClockMap, TakesAnyNumbers) {
  const std::vector<ClockLook> looks{{INT64_MIN, INT64_MAX, INT64_MIN}, {INT64_MAX, INT64_MIN, INT64_MAX}, {0, 0, 0}};
  const ClockMap map(looks);
  for (const std::int64_t time : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX})
    EXPECT_GE(map.host(time).bound_ns, 0);
}

// What a clock that jumps to and fro between the farthest moments adds up to is more than a number holds.
TEST(ClockMap, BoundsOfHostileLooksStayBounds) {
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  std::vector<ClockLook> looks;
  for (std::int64_t i = 0; i < 9; ++i) {
    looks.push_back({i % 2 == 0 ? kFar : -kFar, 10 * i, 10 * i + 2});
    const ClockMap map(looks);
    EXPECT_GE(map.bound_ns(), 0) << i;
    for (const std::int64_t time : {INT64_MIN, -kFar, std::int64_t{0}, kFar, INT64_MAX}) {
      const HostTime found = map.host(time);
      EXPECT_GE(found.bound_ns, 0) << i << ' ' << time;
      EXPECT_LT(found.bound_ns, std::int64_t{1} << 62) << i << ' ' << time;
    }
  }
}

}  // namespace
}  // namespace shard::profiler
