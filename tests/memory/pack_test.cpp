// Are packed offsets free of overlap, repeatable, and close to the live peak?
#include "sim/memory/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace shard {
namespace {

struct Lifetimes {
  std::vector<Bytes> items;
  std::vector<PackEvent> events;

  std::int32_t item(std::int64_t bytes) {
    items.push_back(Bytes{bytes});
    return static_cast<std::int32_t>(items.size()) - 1;
  }
  void acquire(std::int32_t index) { events.push_back({index, true}); }
  void release(std::int32_t index) { events.push_back({index, false}); }
};

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

/// Random lifetimes, sizes from one cell to many; some items live several times, some never end.
Lifetimes random_lifetimes(std::uint32_t seed, int count, std::size_t live_limit, double skew) {
  std::mt19937 random(seed);
  Lifetimes result;
  std::vector<std::int32_t> live, dead;
  for (int i = 0; i < count; ++i) {
    std::int32_t next = 0;
    if (!dead.empty() && random() % 4 == 0) {
      const std::size_t pick = random() % dead.size();
      next = std::exchange(dead[pick], dead.back());
      dead.pop_back();
    } else {
      const double uniform = static_cast<double>(random() % 100000 + 1) / 100001.0;
      next = result.item(static_cast<std::int64_t>(std::pow(uniform, -skew) * 500));
    }
    result.acquire(next);
    live.push_back(next);
    while (live.size() > live_limit) {
      const std::size_t pick = random() % live.size();
      result.release(live[pick]);
      dead.push_back(std::exchange(live[pick], live.back()));
      live.pop_back();
    }
  }
  return result;
}

/// Two steps of a transformer: saved activations freed in reverse, gathered units, temporaries, gradients; buffers of
/// one micro-batch are reused by the next. Without what is never freed, which would flatter the ratio.
Lifetimes transformer(int layers, int micro_batches, bool gather, bool recompute, std::uint32_t seed) {
  std::mt19937 random(seed);
  Lifetimes result;
  const std::int64_t token = 256 * 768 * 4, unit = 12 * 768 * 768 * 4, scores = 12 * 256 * 256 * 4;
  const std::vector<std::int64_t> saved_sizes = {token, 2048, 3 * token, token,     12288,
                                                 token, 2048, 4 * token, 4 * token, token};
  struct Layer {
    std::vector<std::int32_t> saved, again, temporary, backward;
    std::int32_t output, unit, gradient, shard;
  };
  std::vector<Layer> all(static_cast<std::size_t>(layers));
  const std::int32_t input = result.item(token), logits = result.item(256 * 50257 * 4);
  const std::int32_t logits_gradient = result.item(256 * 50257 * 4), loss = result.item(4);
  for (Layer& layer : all) {
    for (const std::int64_t size : saved_sizes) {
      layer.saved.push_back(result.item(size));
      if (recompute) layer.again.push_back(result.item(size));
      layer.backward.push_back(result.item(random() % 5 == 0 ? scores : size));
      layer.temporary.push_back(result.item(static_cast<std::int64_t>(random() % 8 + 1) * token / 2));
    }
    layer.output = result.item(token);
    layer.unit = result.item(unit);
    layer.gradient = result.item(unit);
    layer.shard = result.item(unit / 4);
  }
  for (int step = 0; step < 2; ++step) {
    for (int micro = 0; micro < micro_batches; ++micro) {
      result.acquire(input);
      for (const Layer& layer : all) {
        if (gather) result.acquire(layer.unit);
        for (std::size_t k = 0; k < saved_sizes.size(); ++k) {
          result.acquire(layer.temporary[k]);
          result.acquire(layer.saved[k]);
          if (k > 0) result.release(layer.temporary[k - 1]);
        }
        result.acquire(layer.output);
        result.release(layer.temporary.back());
        if (recompute) {
          for (const std::int32_t item : layer.saved) result.release(item);
        }
        if (gather) result.release(layer.unit);
      }
      for (const std::int32_t item : {logits, loss, logits_gradient}) result.acquire(item);
      result.release(logits);
      std::int32_t flowing = logits_gradient;
      for (auto layer = all.rbegin(); layer != all.rend(); ++layer) {
        if (gather) result.acquire(layer->unit);
        const std::vector<std::int32_t>& needed = recompute ? layer->again : layer->saved;
        if (recompute) {
          for (const std::int32_t item : needed) result.acquire(item);
        }
        result.acquire(layer->gradient);
        for (std::size_t k = 0; k < needed.size(); ++k) {
          result.acquire(layer->backward[k]);
          result.release(std::exchange(flowing, layer->backward[k]));
          result.release(needed[needed.size() - 1 - k]);
        }
        result.release(layer->output);
        if (gather) result.release(layer->unit);
        if (micro == 0) result.acquire(layer->shard);
        result.release(layer->gradient);
      }
      for (const std::int32_t item : {flowing, input, loss}) result.release(item);
    }
    for (const Layer& layer : all) result.release(layer.shard);
  }
  return result;
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
