// Is every parameter where the layout rules put it, and does every shard cover its part of a chunk once?
#include "sim/chunk/layout.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace shard {
namespace {

std::vector<Elems> elems(const std::vector<std::int64_t>& counts) {
  std::vector<Elems> sizes;
  for (const std::int64_t count : counts) sizes.emplace_back(count);
  return sizes;
}

/// "0 1/10 | 2/8": parameters / chunk elements.
std::string text(const ChunkLayout& layout) {
  std::string all;
  for (const Chunk& chunk : layout.chunks) {
    if (!all.empty()) all += " | ";
    std::string names;
    for (const PlacedParameter& placed : chunk.parameters) {
      if (!names.empty()) names += ' ';
      names += std::to_string(placed.parameter);
    }
    all += names + "/" + std::to_string(chunk.elems.count());
  }
  return all;
}

TEST(Layout, NextFitNeverLooksBack) {
  // 6 does not fit beside 5, and the later 2 is not put back into the first chunk's room.
  EXPECT_EQ(text(layout_uniform(elems({5, 6, 3, 2}), Elems{10}, 2)), "0/10 | 1 2/10 | 3/10");
}

TEST(Layout, AParameterThatFitsExactlyFillsTheChunk) {
  EXPECT_EQ(text(layout_uniform(elems({4, 6, 1}), Elems{10}, 2)), "0 1/10 | 2/10");
}

TEST(Layout, AnOversizeParameterClosesTheOpenChunkAndIsRoundedUp) {
  EXPECT_EQ(text(layout_uniform(elems({3, 13, 5, 3}), Elems{8}, 4)), "0/8 | 1/16 | 2 3/8");
}

TEST(Layout, TheRoomBehindAnOversizeParameterIsUsedByWhatFits) {
  EXPECT_EQ(text(layout_uniform(elems({13, 4}), Elems{8}, 4)), "0/16 | 1/8");
  EXPECT_EQ(text(layout_uniform(elems({13, 2, 1, 1}), Elems{8}, 4)), "0 1 2/16 | 3/8");
}

TEST(Layout, ExactOversizeChunksHaveNoRoom) {
  EXPECT_EQ(text(layout_uniform(elems({13, 1}), Elems{8}, 4, Oversize::exact)), "0/13 | 1/8");
}

TEST(Layout, VariableChunksAreTheirContentRoundedUp) {
  const std::vector<std::size_t> starts{0, 2, 3};
  const ChunkLayout layout = layout_variable(elems({5, 2, 8, 1, 2}), starts, 4);
  EXPECT_EQ(text(layout), "0 1/8 | 2/8 | 3 4/4");
  EXPECT_EQ(layout.waste, Elems{2});
}

TEST(Layout, OffsetsAreBackToBackAndPaddingIsTheRest) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::int64_t> size(1, 40);
  for (int round = 0; round < 200; ++round) {
    std::vector<Elems> sizes;
    for (int index = 0; index < 30; ++index) sizes.emplace_back(size(random));
    const std::int64_t world = size(random) % 8 + 1;
    const ChunkLayout layout = layout_uniform(sizes, Elems{world * size(random)}, world);
    std::size_t next = 0;
    Elems waste;
    for (const Chunk& chunk : layout.chunks) {
      EXPECT_EQ(chunk.elems.count() % world, 0);
      EXPECT_EQ(chunk.first_parameter, next);
      Elems offset;
      for (const PlacedParameter& placed : chunk.parameters) {
        EXPECT_EQ(placed, (PlacedParameter{next, offset, sizes[next]}));
        offset += placed.elems;
        ++next;
      }
      EXPECT_EQ(chunk.used, offset);
      EXPECT_LE(chunk.used, chunk.elems);
      waste += chunk.elems - chunk.used;
    }
    EXPECT_EQ(next, sizes.size());
    EXPECT_EQ(layout.waste, waste);
  }
}

TEST(Layout, ShardsCoverAChunkOnce) {
  Elems next;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const ElemRange shard = shard_range(Elems{24}, rank, 4);
    EXPECT_EQ(shard.begin, next);
    EXPECT_EQ(shard.end - shard.begin, Elems{6});
    next = shard.end;
  }
  EXPECT_EQ(next, Elems{24});
}

// The searches rest on this (NextFit): sizes that are multiples of the world size never make more chunks when larger,
// and nothing changes before next_change.
TEST(NextFit, CountsNeverRiseAndChangesAreAnnounced) {
  std::mt19937_64 random(8);
  std::uniform_int_distribution<std::int64_t> size(1, 50);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> sizes;
    for (int index = 0; index < 25; ++index)
      sizes.push_back(size(random) % 3 == 0 ? size(random) % 3 + 1 : size(random));
    const std::int64_t world = size(random) % 12 + 1;
    const NextFit fit(sizes, world, Oversize::round_up);
    std::int64_t change = 0;
    NextFitTally before = fit.tally(world);
    for (std::int64_t chunk = world; chunk <= 60 * world; chunk += world) {
      const NextFitTally tally = fit.tally(chunk);
      EXPECT_LE(tally.chunks(), before.chunks());
      EXPECT_LE(tally.oversize_chunks, before.oversize_chunks);
      EXPECT_TRUE(chunk >= change || tally == before);
      change = fit.next_change(chunk);
      EXPECT_GT(change, chunk);
      before = tally;
    }
  }
}

}  // namespace
}  // namespace shard
