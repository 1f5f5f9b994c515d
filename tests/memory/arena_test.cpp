// Does the arena ledger count live bytes and extents, and refuse impossible entries?
#include "sim/memory/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace shard {
namespace {

using testing::HasSubstr;

TEST(Arena, LivePeakAndExtentAreDifferentThings) {
  ArenaLedger arena(Memory::device);
  ASSERT_TRUE(arena.acquire(BufferId{1}, Bytes{0}, Bytes{100}, Category::parameter));
  ASSERT_TRUE(arena.acquire(BufferId{2}, Bytes{1024}, Bytes{10}, Category::activation));
  EXPECT_EQ(arena.live().count(), 110);
  EXPECT_EQ(arena.extent().count(), 1088);  // 1034 rounded up to 64
  ASSERT_TRUE(arena.release(BufferId{2}));
  ASSERT_TRUE(arena.acquire(BufferId{3}, Bytes{128}, Bytes{50}, Category::gradient));
  EXPECT_EQ(arena.live().count(), 150);
  EXPECT_EQ(arena.live_peak().count(), 150);
  EXPECT_EQ(arena.extent().count(), 1088);
  arena.reset_peaks();
  EXPECT_EQ(arena.extent().count(), 192);  // 178 rounded up
}

TEST(Arena, CategoriesAreThoseOfThePeak) {
  ArenaLedger arena(Memory::host);
  ASSERT_TRUE(arena.acquire(BufferId{1}, Bytes{0}, Bytes{64}, Category::parameter));
  ASSERT_TRUE(arena.acquire(BufferId{2}, Bytes{64}, Bytes{128}, Category::workspace));
  ASSERT_TRUE(arena.release(BufferId{2}));
  ASSERT_TRUE(arena.acquire(BufferId{3}, Bytes{64}, Bytes{64}, Category::gradient));
  const CategoryBytes& peak = arena.by_category_at_peak();
  EXPECT_EQ(peak[static_cast<std::size_t>(Category::parameter)].count(), 64);
  EXPECT_EQ(peak[static_cast<std::size_t>(Category::workspace)].count(), 128);
  EXPECT_EQ(peak[static_cast<std::size_t>(Category::gradient)].count(), 0);
  EXPECT_EQ(arena.live_by_category()[static_cast<std::size_t>(Category::gradient)].count(), 64);
}

TEST(Arena, OverlapNamesBothBuffersAndChangesNothing) {
  ArenaLedger arena(Memory::device);
  ASSERT_TRUE(arena.acquire(BufferId{1}, Bytes{64}, Bytes{128}, Category::parameter));
  struct {
    std::int64_t offset, bytes;
  } cases[] = {{0, 65}, {64, 1}, {128, 1}, {128, 500}, {0, 500}};
  for (const auto& range : cases) {
    const Result<void> result = arena.acquire(BufferId{2}, Bytes{range.offset}, Bytes{range.bytes}, Category::gradient);
    ASSERT_FALSE(result) << range.offset;
    EXPECT_EQ(result.error().code, Errc::internal);
    EXPECT_THAT(result.error().what, HasSubstr("buffer 1 [64, 192)"));
    EXPECT_THAT(result.error().what, HasSubstr("buffer 2 ["));
  }
  EXPECT_EQ(arena.live().count(), 128);
  EXPECT_FALSE(arena.is_live(BufferId{2}));
  EXPECT_TRUE(arena.acquire(BufferId{2}, Bytes{192}, Bytes{1}, Category::gradient));
  EXPECT_TRUE(arena.acquire(BufferId{3}, Bytes{0}, Bytes{64}, Category::gradient));
}

TEST(Arena, DoubleAcquireDoubleReleaseAndCrookedOffsetsAreRefused) {
  ArenaLedger arena(Memory::device);
  ASSERT_TRUE(arena.acquire(BufferId{1}, Bytes{0}, Bytes{64}, Category::parameter));
  EXPECT_FALSE(arena.acquire(BufferId{1}, Bytes{64}, Bytes{64}, Category::parameter));
  EXPECT_FALSE(arena.acquire(BufferId{2}, Bytes{65}, Bytes{64}, Category::parameter));
  EXPECT_FALSE(arena.acquire(BufferId{2}, Bytes{-64}, Bytes{64}, Category::parameter));
  EXPECT_FALSE(arena.release(BufferId{2}));
  EXPECT_TRUE(arena.release(BufferId{1}));
  EXPECT_FALSE(arena.release(BufferId{1}));
  EXPECT_EQ(arena.live().count(), 0);
  EXPECT_EQ(arena.live_count(), 0u);
}

TEST(Arena, EmptyBuffersTakeNoRoom) {
  ArenaLedger arena(Memory::device);
  EXPECT_TRUE(arena.acquire(BufferId{1}, Bytes{64}, Bytes{0}, Category::input));
  EXPECT_TRUE(arena.acquire(BufferId{2}, Bytes{64}, Bytes{64}, Category::input));
  EXPECT_TRUE(arena.acquire(BufferId{3}, Bytes{64}, Bytes{0}, Category::input));
  EXPECT_FALSE(arena.acquire(BufferId{3}, Bytes{64}, Bytes{0}, Category::input));
  EXPECT_TRUE(arena.release(BufferId{1}));
  EXPECT_FALSE(arena.acquire(BufferId{4}, Bytes{64}, Bytes{64}, Category::input));
  EXPECT_EQ(arena.extent().count(), 128);
}

// The ledger refuses exactly what a map of every 64-byte cell refuses.
TEST(Arena, RefusesExactlyWhatABitmapRefuses) {
  std::mt19937 random(11);
  ArenaLedger arena(Memory::device);
  constexpr int kCells = 64;
  std::vector<int> owner(kCells, -1);
  std::vector<bool> live(40, false);
  for (int i = 0; i < 20000; ++i) {
    const int id = static_cast<int>(random() % live.size());
    const int begin = static_cast<int>(random() % kCells);
    const int length = 1 + static_cast<int>(random()) % std::min(8, kCells - begin);
    const int cells = std::max(1, length);
    if (random() % 2 == 0) {
      bool free = !live[static_cast<std::size_t>(id)];
      for (int cell = begin; cell < begin + cells; ++cell) free = free && owner[static_cast<std::size_t>(cell)] < 0;
      const bool taken =
          bool(arena.acquire(BufferId{id}, Bytes{begin * 64}, Bytes{cells * 64 - 1}, Category::workspace));
      ASSERT_EQ(taken, free);
      if (!taken) continue;
      live[static_cast<std::size_t>(id)] = true;
      for (int cell = begin; cell < begin + cells; ++cell) owner[static_cast<std::size_t>(cell)] = id;
    } else {
      ASSERT_EQ(bool(arena.release(BufferId{id})), bool(live[static_cast<std::size_t>(id)]));
      live[static_cast<std::size_t>(id)] = false;
      std::replace(owner.begin(), owner.end(), id, -1);
    }
  }
}

}  // namespace
}  // namespace shard
