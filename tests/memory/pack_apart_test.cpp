// Does what was just given back stay alone where there is room, for no more memory?
#include "sim/memory/pack_apart.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/memory/random_lifetimes.h"

namespace shard {
namespace {

PackEvent takes(int item) {
  return {.item = item, .acquire = true};
}
PackEvent gives(int item) {
  return {.item = item, .acquire = false};
}

/// A large item first, then three of 64 bytes one behind the other; items 4 and 5 are the times after the first two.
struct Row {
  std::vector<Bytes> items{Bytes{64 * 4}, Bytes{64}, Bytes{64}, Bytes{64}};
  std::vector<PackEvent> events{takes(0), gives(0), takes(1), gives(1), takes(4), takes(2),
                                gives(2), takes(5), gives(4), takes(3), gives(5), gives(3)};
  std::vector<std::int32_t> after{-1, 4, 5, -1};
  std::vector<std::uint8_t> may_move{1, 1, 1, 1};
  std::vector<Bytes> offsets{Bytes{0}, Bytes{0}, Bytes{0}, Bytes{0}};

  [[nodiscard]] std::optional<std::vector<Bytes>> packed(Bytes limit) const {
    return pack_apart({.items = items,
                       .events = events,
                       .after = after,
                       .may_move = may_move,
                       .offsets = offsets,
                       .limit = limit,
                       .alignment = 64});
  }
};

TEST(PackApart, NeighboursInTimeTakeTwoPlacesInTurn) {
  EXPECT_EQ(Row{}.packed(Bytes{256}), (std::vector<Bytes>{Bytes{0}, Bytes{0}, Bytes{64}, Bytes{0}}));
}

TEST(PackApart, WithoutRoomEachHasThePlaceOfThePacking) {
  Row row;
  row.items[0] = Bytes{64};
  EXPECT_EQ(row.packed(Bytes{64}), row.offsets);
}

TEST(PackApart, WhatMayNotMoveStays) {
  Row row;
  row.may_move = {1, 1, 0, 1};
  const auto offsets = row.packed(Bytes{256});
  ASSERT_TRUE(offsets);
  EXPECT_EQ((*offsets)[2], Bytes{0});
  EXPECT_NE((*offsets)[1], Bytes{0});
}

// Whatever the lifetimes: nothing overlaps, nothing is over the limit.
TEST(PackApart, RandomLifetimesStaySoundBelowTheLimit) {
  std::mt19937 random(5);
  int moved = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const Lifetimes lifetimes = random_lifetimes(seed, 10 + static_cast<int>(seed), 1 + seed % 40, 0.1 * (seed % 12));
    const Result<Packing> packing = pack(lifetimes.items, lifetimes.events);
    ASSERT_TRUE(packing);
    const std::size_t n = lifetimes.items.size();
    std::vector<std::int32_t> after(n, -1);
    std::vector<PackEvent> events;
    std::vector<std::int32_t> alone;
    auto next = static_cast<std::int32_t>(n);
    for (const PackEvent& event : lifetimes.events) {
      std::int32_t& time = after[static_cast<std::size_t>(event.item)];
      if (event.acquire && std::erase(alone, time) > 0) events.push_back(gives(time));
      events.push_back(event);
      if (event.acquire || random() % 2 == 0) continue;
      if (time < 0) time = next++;
      events.push_back(takes(time));
      alone.push_back(time);
      if (alone.size() < 3) continue;
      events.push_back(gives(alone.front()));
      alone.erase(alone.begin());
    }
    const std::vector<std::uint8_t> may_move(n, 1);
    const auto offsets = pack_apart({.items = lifetimes.items,
                                     .events = events,
                                     .after = after,
                                     .may_move = may_move,
                                     .offsets = packing->offsets,
                                     .limit = packing->extent});
    if (!offsets) continue;
    if (*offsets != packing->offsets) ++moved;
    ArenaLedger arena(Memory::device, kArenaAlignment);
    for (const PackEvent& event : lifetimes.events) {
      const auto index = static_cast<std::size_t>(event.item);
      const Result<void> done =
          event.acquire ? arena.acquire(BufferId{event.item}, (*offsets)[index],
                                        round_up(lifetimes.items[index], kArenaAlignment), Category::workspace)
                        : arena.release(BufferId{event.item});
      ASSERT_TRUE(done) << to_string(done.error());
    }
    EXPECT_LE(arena.extent(), packing->extent);
  }
  EXPECT_GT(moved, 20);
}

}  // namespace
}  // namespace shard
