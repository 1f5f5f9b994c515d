// Are moments left out where another has all that lives in them, and no others?
#include "sim/memory/covered_moments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/memory/random_lifetimes.h"

namespace shard {
namespace {

std::vector<std::uint8_t> covered(const Lifetimes& lifetimes) {
  std::vector<std::int64_t> sizes;
  for (const Bytes bytes : lifetimes.items) sizes.push_back(bytes.count());
  return packing::covered_moments(sizes, lifetimes.events);
}

std::vector<std::set<std::int32_t>> live_at_moments(const Lifetimes& lifetimes) {
  std::vector<std::set<std::int32_t>> moments;
  std::set<std::int32_t> live;
  bool acquiring = false;
  for (const PackEvent& event : lifetimes.events) {
    if (!event.acquire && acquiring) moments.push_back(live);
    acquiring = event.acquire;
    if (event.acquire)
      live.insert(event.item);
    else
      live.erase(event.item);
  }
  if (acquiring) moments.push_back(live);
  return moments;
}

TEST(CoveredMoments, OfTwoMicroStepsTheOneWithMoreStays) {
  Lifetimes lifetimes;
  const std::int32_t a = lifetimes.item(64), sum = lifetimes.item(64), b = lifetimes.item(64);
  for (int step = 0; step < 2; ++step) {
    lifetimes.acquire(a);
    lifetimes.release(a);
    if (step == 0) lifetimes.acquire(sum);
    lifetimes.acquire(b);
    lifetimes.release(b);
  }
  EXPECT_EQ(covered(lifetimes), (std::vector<std::uint8_t>{1, 1, 0, 0}));
}

TEST(CoveredMoments, NoneWhereNothingIsAcquiredAgain) {
  Lifetimes lifetimes;
  for (int i = 0; i < 9; ++i) {
    lifetimes.acquire(lifetimes.item(64));
    if (i % 2 == 1) lifetimes.release(i - 1);
  }
  EXPECT_TRUE(covered(lifetimes).empty());
}

TEST(CoveredMoments, WhatLivesInOneLeftOutLivesInOneThatStays) {
  std::size_t left_out = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Lifetimes lifetimes = seed < 8 ? transformer(2, 1 + static_cast<int>(seed), seed % 2 == 0, false, seed)
                                         : random_lifetimes(seed, 60, 1 + seed % 9, 0.4);
    const std::vector<std::uint8_t> out = covered(lifetimes);
    const std::vector<std::set<std::int32_t>> live = live_at_moments(lifetimes);
    for (std::size_t moment = 0; moment < out.size(); ++moment) {
      if (out[moment] == 0) continue;
      ++left_out;
      bool found = false;
      for (std::size_t other = 0; other < out.size() && !found; ++other)
        found = out[other] == 0 && std::ranges::includes(live[other], live[moment]);
      EXPECT_TRUE(found) << "seed " << seed << " moment " << moment;
    }
  }
  EXPECT_GT(left_out, 50U);
}

}  // namespace
}  // namespace shard
