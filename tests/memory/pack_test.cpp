// Are packed offsets free of overlap, repeatable, and close to the live peak?
#include "sim/memory/pack.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/memory/random_lifetimes.h"

namespace shard {
namespace {

Packing must(const Lifetimes& lifetimes, const PackOptions& options = {}) {
  const Result<Packing> packing = pack(lifetimes.items, lifetimes.events, options);
  EXPECT_TRUE(packing) << to_string(packing.error());
  return packing ? *packing : Packing{};
}

/// Walks the plan with the ledger, which refuses overlaps and counts the peaks by itself.
void expect_sound(const Lifetimes& lifetimes, const Packing& packing, std::int64_t alignment = kArenaAlignment) {
  ArenaLedger arena(Memory::device, alignment);
  for (const PackEvent& event : lifetimes.events) {
    const auto index = static_cast<std::size_t>(event.item);
    const Result<void> done = event.acquire
                                  ? arena.acquire(BufferId{event.item}, packing.offsets[index],
                                                  round_up(lifetimes.items[index], alignment), Category::workspace)
                                  : arena.release(BufferId{event.item});
    ASSERT_TRUE(done) << to_string(done.error());
  }
  EXPECT_EQ(arena.extent(), packing.extent);
  EXPECT_EQ(arena.live_peak(), packing.live_peak);
  EXPECT_GE(packing.extent, packing.live_peak);
}

double ratio(const Packing& packing) {
  return static_cast<double>(packing.extent.count()) / static_cast<double>(packing.live_peak.count());
}

TEST(Pack, OverlapsNothingThatLivesTogether) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Lifetimes lifetimes = random_lifetimes(seed, 10 + static_cast<int>(seed), 1 + seed % 40, 0.1 * (seed % 12));
    expect_sound(lifetimes, must(lifetimes));
  }
}

TEST(Pack, TrainingStepsComeWithinAThousandthOfTheLivePeak) {
  for (const int layers : {4, 12, 24}) {
    for (const int micro_batches : {1, 4}) {
      for (const bool gather : {false, true}) {
        for (const bool recompute : {false, true}) {
          const Lifetimes lifetimes = transformer(layers, micro_batches, gather, recompute, 1);
          const Packing packing = must(lifetimes);
          expect_sound(lifetimes, packing);
          EXPECT_LE(ratio(packing), 1.001) << layers << " layers, " << micro_batches << " micro-batches, gather "
                                           << gather << ", recompute " << recompute;
        }
      }
    }
  }
}

TEST(Pack, RandomLifetimesComeWithinATenth) {
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    const Lifetimes lifetimes = random_lifetimes(seed, 1000, 150, 0.6);
    EXPECT_LE(ratio(must(lifetimes)), 1.1) << seed;
  }
}

TEST(Pack, MoreOrdersNeverPackWorse) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    const Lifetimes lifetimes = random_lifetimes(seed, 300, 60, 0.8);
    EXPECT_LE(must(lifetimes, {.orders = 3}).extent, must(lifetimes, {.orders = 1}).extent);
  }
}

TEST(Pack, TheSameInputGivesTheSameOffsets) {
  const Lifetimes lifetimes = random_lifetimes(5, 500, 80, 0.8);
  EXPECT_EQ(must(lifetimes).offsets, must(lifetimes).offsets);
}

TEST(Pack, NestedLifetimesNeedNothingBeyondTheLivePeak) {
  Lifetimes lifetimes;
  for (int i = 0; i < 50; ++i) lifetimes.acquire(lifetimes.item(64 * (1 + i * 7 % 13)));
  for (int i = 49; i >= 0; --i) lifetimes.release(i);
  EXPECT_EQ(must(lifetimes).extent, must(lifetimes).live_peak);
}

TEST(Pack, WhatIsNeverReleasedLiesAtTheBottom) {
  Lifetimes lifetimes;
  const std::int32_t weights = lifetimes.item(100), scratch = lifetimes.item(1 << 20), more = lifetimes.item(1000);
  for (const std::int32_t item : {weights, scratch, more}) lifetimes.acquire(item);
  lifetimes.release(scratch);
  const std::int32_t state = lifetimes.item(1 << 20);  // born when the scratch is gone: may take its place
  lifetimes.acquire(state);
  const Packing packing = must(lifetimes);
  expect_sound(lifetimes, packing);
  EXPECT_EQ(packing.offsets[0].count(), 0);
  EXPECT_EQ(packing.offsets[2].count(), 128);
  EXPECT_EQ(packing.extent, packing.live_peak);
}

TEST(Pack, AlignmentHoldsForOffsetsAndSizes) {
  Lifetimes lifetimes = random_lifetimes(3, 100, 20, 0.5);
  const Packing packing = must(lifetimes, {.alignment = 512});
  for (const Bytes offset : packing.offsets) EXPECT_EQ(offset.count() % 512, 0);
  expect_sound(lifetimes, packing, 512);
}

TEST(Pack, ItemsOfNoBytesOrNeverAcquiredTakeNoRoom) {
  Lifetimes lifetimes;
  const std::int32_t empty = lifetimes.item(0), ghost = lifetimes.item(1 << 20), real = lifetimes.item(64);
  lifetimes.acquire(empty);
  lifetimes.acquire(real);
  lifetimes.release(empty);
  lifetimes.release(real);
  const Packing packing = must(lifetimes);
  EXPECT_EQ(packing.extent.count(), 64);
  EXPECT_EQ(packing.offsets[static_cast<std::size_t>(ghost)].count(), 0);
  EXPECT_EQ(must(Lifetimes{}).extent.count(), 0);
}

TEST(Pack, EventsThatContradictThemselvesAreRefused) {
  Lifetimes lifetimes;
  lifetimes.item(64);
  const std::vector<std::vector<PackEvent>> broken = {
      {{1, true}}, {{-1, true}}, {{0, false}}, {{0, true}, {0, true}}, {{0, true}, {0, false}, {0, false}}};
  for (const std::vector<PackEvent>& events : broken) {
    const Result<Packing> packing = pack(lifetimes.items, events);
    ASSERT_FALSE(packing);
    EXPECT_EQ(packing.error().code, Errc::internal);
  }
}

}  // namespace
}  // namespace shard
