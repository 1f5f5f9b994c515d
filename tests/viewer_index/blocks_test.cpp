// Are blocks, classes and rectangles what a walk over every event gives?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/viewer_index/random_trace.h"
#include "traces/sites.h"
#include "viewer/index/block_picture.h"
#include "viewer/index/segment_rows.h"

namespace shard::view {
namespace {

using testing::Random;

constexpr int kSites = 14;

/// Blocks that come and go at random; their stacks are one frame each, some have none.
Trace allocator_trace(Random& random, int events) {
  Trace trace;
  for (int s = 0; s < kSites; ++s) {
    trace.names.push_back("/me/file" + std::to_string(s) + ".py");
    trace.frames.push_back({NameId{s}, NameId{s}, s + 1});
    trace.stacks.push_back({FrameId{s}, {}});
  }
  std::vector<MemoryEvent> live;
  std::int64_t time = 1000;
  for (int i = 0; i < events; ++i) {
    time += static_cast<std::int64_t>(random() % 50);
    if (!live.empty() && random() % 2 == 0) {
      const std::size_t n = random() % live.size();
      MemoryEvent event = live[n];
      event.delta_bytes = -event.delta_bytes;
      event.stack = {};
      event.time_ns = time;
      trace.memory.push_back(event);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(n));
    } else {
      const auto site = static_cast<std::int32_t>(random() % (kSites + 1));
      MemoryEvent event{.rank = Rank{0},
                        .buffer = BufferId{i},
                        .delta_bytes = static_cast<std::int64_t>(1 + random() % 1000) * 512,
                        .category = site % 2 == 0 ? Category::activation : Category::not_known,
                        .time_ns = time,
                        .stack = site == kSites ? StackId{} : StackId{site}};
      trace.memory.push_back(event);
      live.push_back(event);
    }
  }
  return trace;
}

struct Made {
  Trace trace;
  MemorySeries series;
  BlockList blocks;
  MemoryClasses classes;
  Made(Trace from, MemoryBy by)
      : trace(std::move(from)),
        series(std::move(memory_series(trace).front())),
        blocks(trace.memory, series),
        classes(trace, series, blocks, sites(trace), by) {}
};

TEST(Blocks, LiveOnesAreThoseOfTheTableAtEveryMoment) {
  Random random(3);
  const Made made(allocator_trace(random, 500), MemoryBy::site);
  for (std::size_t moment = 0; moment <= made.series.event_count(); ++moment) {
    std::vector<std::uint32_t> expected, found;
    for (const LiveBuffer& buffer : made.series.live_at(made.trace.memory, moment)) expected.push_back(buffer.event);
    for (const Block& block : made.blocks.all()) {
      if (block.begin <= moment && moment < block.end) found.push_back(block.acquired);
    }
    std::ranges::sort(expected);
    ASSERT_EQ(found, expected) << moment;
  }
}

TEST(Classes, AddUpToTheCurveAtEveryMoment) {
  Random random(4);
  for (const MemoryBy by : {MemoryBy::site, MemoryBy::stack, MemoryBy::category}) {
    const Made made(allocator_trace(random, 700), by);
    EXPECT_LE(made.classes.all().size(), kMostClasses);
    for (std::size_t moment = 0; moment <= made.series.event_count(); ++moment) {
      const ClassStack stack = made.classes.at(made.blocks, moment);
      std::int64_t bytes = 0, count = 0;
      for (const std::int64_t each : stack.bytes) bytes += each;
      for (const std::int32_t each : stack.blocks) count += each;
      ASSERT_EQ(bytes, made.series.bytes_at(moment));
      ASSERT_EQ(count, static_cast<std::int64_t>(made.series.live_at(made.trace.memory, moment).size()));
    }
  }
}

TEST(Classes, TheLargestSitesHaveTheirOwnTheOthersAreTogetherAndNoStackIsOne) {
  Random random(5);
  const Made made(allocator_trace(random, 900), MemoryBy::site);
  const std::vector<std::size_t> order = made.classes.by_peak();
  ASSERT_EQ(order.size(), kMostSites + 2);
  for (std::size_t n = 1; n < kMostSites; ++n)
    EXPECT_GE(made.classes.all()[order[n - 1]].peak_bytes, made.classes.all()[order[n]].peak_bytes);
  std::map<std::string, std::int64_t> names;
  for (const MemoryClass& each : made.classes.all()) names[each.name] = each.sites;
  EXPECT_EQ(names.at("other sites"), kSites - static_cast<std::int64_t>(kMostSites));
  EXPECT_TRUE(names.contains("no stack"));
}

/// Every block at every column where it has to be, by a sum over those below it.
TEST(BlockPicture, BlocksLieWhereTheOnesBelowThemEnd) {
  Random random(6);
  for (int n = 0; n < 30; ++n) {
    const Made made(allocator_trace(random, 300), n % 2 == 0 ? MemoryBy::site : MemoryBy::category);
    const PixelRange view = testing::random_view(random, 9000, 40);
    BlockPicture picture;
    draw_blocks(made.series, made.blocks, made.classes, view, {.least_bytes = 1, .least_columns = 0}, picture);
    std::vector<MomentColumn> columns;
    made.series.moments(view, columns);
    std::map<std::pair<std::int32_t, std::uint32_t>, std::int64_t> drawn;
    for (const BlockRect& rect : picture.blocks) {
      for (std::int32_t c = rect.x0; c < rect.x1; ++c) {
        const bool alone = drawn.emplace(std::pair(c, rect.block), rect.low_bytes).second;
        ASSERT_TRUE(alone) << "twice in a column";
      }
    }
    std::size_t expected = 0;
    for (std::int32_t c = 0; c < view.width; ++c) {
      const std::size_t moment = columns[static_cast<std::size_t>(c)].highest_moment;
      std::int64_t low = 0;
      for (std::size_t k = 0; k < made.classes.all().size(); ++k) {
        for (std::uint32_t b = 0; b < made.blocks.all().size(); ++b) {
          const Block& block = made.blocks.all()[b];
          if (made.classes.of(b) != k || block.begin > moment || block.end <= moment) continue;
          const auto found = drawn.find({c, b});
          ASSERT_NE(found, drawn.end());
          ASSERT_EQ(found->second, low);
          ASSERT_EQ(block_at(picture, made.blocks, c, low), b);
          ASSERT_EQ(class_at(picture, c, low), k);
          low += block.bytes;
          ++expected;
        }
      }
      ASSERT_EQ(class_at(picture, c, low), kMostClasses) << "above the stack";
      ASSERT_EQ(block_at(picture, made.blocks, c, low), kNone);
    }
    ASSERT_EQ(drawn.size(), expected);
  }
}

TEST(BlockPicture, TooManyRectanglesLeaveTheSmallestToTheirBands) {
  Random random(7);
  const Made made(allocator_trace(random, 4000), MemoryBy::site);
  const TimeRange all{made.series.time_of(0), made.series.time_of(made.series.event_count()) + 1};
  BlockPicture picture;
  draw_blocks(made.series, made.blocks, made.classes, {all, 400}, {.least_bytes = 1, .most_rects = 5000}, picture);
  EXPECT_LE(picture.blocks.size(), 5000u);
  EXPECT_FALSE(picture.blocks.empty());
  EXPECT_GT(picture.least_bytes, 1);
  for (const BlockRect& rect : picture.blocks) EXPECT_GE(made.blocks.all()[rect.block].bytes, picture.least_bytes);
}

TEST(BlockPicture, OnlyWhatReachesIntoThePartOfTheAxisIsDrawn) {
  Random random(8);
  const Made made(allocator_trace(random, 600), MemoryBy::site);
  const TimeRange all{made.series.time_of(0), made.series.time_of(made.series.event_count()) + 1};
  BlockPicture whole, part;
  draw_blocks(made.series, made.blocks, made.classes, {all, 100}, {}, whole);
  const std::int64_t low = made.series.peak_bytes() / 3, high = made.series.peak_bytes() / 2;
  draw_blocks(made.series, made.blocks, made.classes, {all, 100}, {.low_bytes = low, .high_bytes = high}, part);
  for (std::int32_t c = 0; c < 100; ++c) {
    for (std::int64_t at = low; at < high; at += 4096)
      ASSERT_EQ(block_at(part, made.blocks, c, at), block_at(whole, made.blocks, c, at));
  }
  EXPECT_LT(part.blocks.size(), whole.blocks.size());
}

TEST(Blocks, OfAReleaseWithoutAnAcquisitionThereIsNone) {
  Trace trace;
  trace.memory.push_back({.rank = Rank{0}, .buffer = BufferId{1}, .delta_bytes = -512});
  trace.memory.push_back({.rank = Rank{0}, .buffer = BufferId{2}, .delta_bytes = 1024, .time_ns = 5});
  trace.memory.push_back({.rank = Rank{0}, .buffer = BufferId{2}, .delta_bytes = 0, .time_ns = 6});
  const Made made(std::move(trace), MemoryBy::site);
  ASSERT_EQ(made.blocks.all().size(), 1u);
  EXPECT_EQ(made.blocks.at(1), kNone);
  EXPECT_EQ(made.blocks.all()[0].end, 4u) << "it lives on";
  EXPECT_EQ(made.blocks.acquired_by(1), 0u);
  EXPECT_EQ(made.blocks.acquired_by(0), kNone);
}

SegmentMap segments(std::vector<std::int64_t> bytes) {
  SegmentMap map;
  std::uint64_t address = 4096;
  for (const std::int64_t each : bytes) {
    map.segments.push_back({.address = address, .bytes = each});
    address += 2 * static_cast<std::uint64_t>(each);
  }
  return map;
}

TEST(SegmentRows, EverySegmentIsThereWholeAndNoTwoOverlap) {
  const SegmentMap map = segments({1 << 20, 700 << 20, 20 << 20, 20 << 20, 2 << 20, 60 << 20, 2 << 20});
  for (const std::int32_t most : {1, 2, 3, 8}) {
    const SegmentRows rows = lay_out_segments(map, 500, most, 4);
    EXPECT_LE(rows.row_count, most);
    EXPECT_EQ(rows.left_out, 0u) << most;
    std::map<std::size_t, std::int64_t> covered;
    const SegmentBar* before = nullptr;
    for (const SegmentBar& bar : rows.bars) {
      EXPECT_EQ(bar.begin_bytes, covered[bar.segment]);
      covered[bar.segment] = bar.end_bytes;
      EXPECT_GE(bar.x0, 0);
      EXPECT_LE(bar.x1, 500);
      EXPECT_GE(bar.x1 - bar.x0, 1);
      if (before != nullptr && before->row == bar.row) {
        EXPECT_GE(bar.x0, before->x1);
      }
      before = &bar;
    }
    for (std::size_t i = 0; i < map.segments.size(); ++i) EXPECT_EQ(covered[i], map.segments[i].bytes);
  }
}

TEST(SegmentRows, WhereThereAreTooManyTheSmallestAreLeftOutAndCounted) {
  const SegmentMap map = segments(std::vector<std::int64_t>(5000, 2 << 20));
  const SegmentRows rows = lay_out_segments(map, 300, 2, 4);
  EXPECT_EQ(rows.bars.size() + rows.left_out, 5000u);
  EXPECT_GT(rows.left_out, 4000u);
  EXPECT_TRUE(lay_out_segments(segments({}), 300, 2, 4).bars.empty());
  EXPECT_EQ(lay_out_segments(map, 0, 2, 4).left_out, 5000u);
}

TEST(SegmentRows, ABlockIsFoundByAnAddressInsideItAndAGapIsNone) {
  PlacedSegment segment{.address = 1000, .bytes = 1000};
  segment.blocks = {{.address = 1100, .bytes = 100}, {.address = 1300, .bytes = 50}};
  for (const auto& [address, expected] : std::vector<std::pair<std::uint64_t, std::size_t>>{
           {1000, 2}, {1099, 2}, {1100, 0}, {1199, 0}, {1200, 2}, {1349, 1}, {1350, 2}})
    EXPECT_EQ(block_of(segment, address), expected) << address;
}

}  // namespace
}  // namespace shard::view
