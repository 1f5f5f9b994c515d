// Does the chunk map show, for any rows and columns, the exact share of time that each state holds?
#include "viewer/index/chunk_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/viewer_index/random_trace.h"

namespace shard::view {
namespace {

using testing::pick;
using testing::Random;

constexpr std::int64_t kEnd = 5000;

/// The class of a unit at one nanosecond: the last state by time, then file order.
int class_at(const Trace& trace, Rank rank, UnitId unit, std::int64_t time) {
  const ChunkState* found = nullptr;
  for (const ChunkState& state : trace.chunk_states) {
    if (state.rank != rank || state.unit != unit || state.time_ns > time) continue;
    if (found == nullptr || state.time_ns >= found->time_ns) found = &state;
  }
  return found == nullptr ? -1 : static_cast<int>(chunk_class(found->state, found->memory));
}

TEST(ChunkMap, RowsEqualBruteForce) {
  Random random(1);
  std::vector<ByChunkClass> cells;
  for (int n = 0; n < 30; ++n) {
    const Trace trace = testing::random_trace(random, {.spans = 0, .chunk_states = 60});
    const ChunkMap map(trace, kEnd);
    const std::span<const UnitId> units = map.units(Rank{0});
    const std::int64_t begin = pick(random, -100, kEnd - 100);
    const PixelRange view{{begin, begin + pick(random, 1, 120)}, static_cast<std::int32_t>(pick(random, 1, 40))};
    const auto first = static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(units.size()) - 1));
    const auto count = static_cast<std::size_t>(pick(random, 1, 6));
    map.row(Rank{0}, first, count, view, cells);
    for (std::int32_t c = 0; c < view.width; ++c) {
      ByChunkClass expected{};
      for (std::size_t unit = first; unit < std::min(first + count, units.size()); ++unit) {
        for (std::int64_t t = view.begin(c); t < std::min(view.end(c), kEnd); ++t) {
          const int kind = class_at(trace, Rank{0}, units[unit], t);
          if (kind >= 0) ++expected[static_cast<std::size_t>(kind)];
        }
      }
      ASSERT_EQ(cells[static_cast<std::size_t>(c)], expected);
    }
  }
}

TEST(ChunkMap, PictureEqualsItsRows) {
  Random random(2);
  std::vector<ChunkRun> runs;
  std::vector<ByChunkClass> cells;
  for (int n = 0; n < 1500; ++n) {
    const Trace trace = testing::random_trace(random, {.spans = 0, .chunk_states = 80});
    const ChunkMap map(trace, kEnd);
    const PixelRange view = testing::random_view(random, kEnd, 50);
    const ChunkRows rows{static_cast<std::size_t>(pick(random, 0, 5)), static_cast<std::size_t>(pick(random, 1, 7)), 9};
    map.draw(Rank{0}, rows, view, runs);
    std::size_t at = 0;
    for (std::int32_t row = 0; row < rows.rows; ++row) {
      const std::size_t first = rows.first + static_cast<std::size_t>(row) * rows.units_per_row;
      if (first >= map.units(Rank{0}).size()) break;
      const std::size_t count = std::min(rows.units_per_row, map.units(Rank{0}).size() - first);
      map.row(Rank{0}, first, count, view, cells);
      for (std::int32_t c = 0; c < view.width; ++c) {
        const ByChunkClass& cell = cells[static_cast<std::size_t>(c)];
        while (at < runs.size() && (runs[at].row < row || (runs[at].row == row && runs[at].last_column <= c))) ++at;
        const bool shown = at < runs.size() && runs[at].row == row && runs[at].first_column <= c;
        ASSERT_EQ(shown, cell != ByChunkClass{}) << "row " << row << " column " << c;
        if (!shown) continue;
        const auto all = static_cast<double>((view.end(c) - view.begin(c)) * static_cast<std::int64_t>(count));
        for (std::size_t k = 0; k < cell.size(); ++k) {
          ASSERT_NEAR(runs[at].share[k], 255 * static_cast<double>(cell[k]) / all, 0.5001);
        }
      }
    }
  }
}

TEST(ChunkMap, HistoryNamesAndPlaces) {
  Trace trace;
  trace.header.units.resize(8);
  trace.header.units[4] = {"embedding", 100, 400};
  trace.header.units[7] = {"h.0", 50, 200};
  trace.chunk_states = {{Rank{0}, UnitId{7}, 30, Memory::host, UnitState::sharded},
                        {Rank{0}, UnitId{7}, 10, Memory::device, UnitState::gathering},
                        {Rank{0}, UnitId{4}, 20, Memory::disk, UnitState::sharded}};
  const ChunkMap map(trace, 100);
  EXPECT_EQ(map.name_of(UnitId{4}), "embedding");
  EXPECT_EQ(map.name_of(UnitId{7}), "h.0");
  EXPECT_EQ(map.name_of(UnitId{8}), "unit 8");
  EXPECT_EQ(map.name_of(UnitId{5}), "unit 5");
  EXPECT_EQ(map.name_of(UnitId{}), "");
  EXPECT_EQ(map.info_of(UnitId{4})->elements, 100);
  EXPECT_EQ(map.info_of(UnitId{5}), nullptr);
  EXPECT_EQ(map.info_of(UnitId{8}), nullptr);
  EXPECT_EQ(map.position_of(Rank{0}, UnitId{7}), 1u);
  EXPECT_FALSE(map.position_of(Rank{0}, UnitId{5}));
  const std::vector<ChunkStretch> history = map.history(Rank{0}, UnitId{7});
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history[0].time, (TimeRange{10, 30}));
  EXPECT_EQ(history[1].time, (TimeRange{30, 100}));
  EXPECT_EQ(history[1].memory, Memory::host);
  EXPECT_FALSE(map.at(Rank{0}, UnitId{7}, 9));
  EXPECT_EQ(map.at(Rank{0}, UnitId{7}, 29)->state, UnitState::gathering);
  EXPECT_TRUE(map.units(Rank{3}).empty());
}

}  // namespace
}  // namespace shard::view
