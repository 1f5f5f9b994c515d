// Memory over time for one picture: bands of classes, and within them a rectangle for every block that is large enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "viewer/index/blocks.h"
#include "viewer/index/memory.h"
#include "viewer/index/memory_classes.h"
#include "viewer/index/viewport.h"

namespace shard::view {

/// A part of a block that lies at one height, over the columns [x0, x1).
struct BlockRect {
  std::int32_t x0 = 0, x1 = 0;
  std::int64_t low_bytes = 0;  ///< its lower edge; the upper one is the block's bytes above
  std::uint32_t block = 0;

  friend bool operator==(const BlockRect&, const BlockRect&) = default;
};

struct BlockPicture {
  std::vector<MomentColumn> columns;
  std::vector<ClassStack> stacks;  ///< by column, at its highest moment
  std::vector<BlockRect> blocks;   ///< by the column that they end in
  std::int64_t least_bytes = 0;    ///< blocks smaller than this are shown by their band alone
};

/// How much detail is worth drawing.
struct BlockDetail {
  std::int64_t least_bytes = 1;    ///< of a block with a rectangle of its own
  std::int32_t least_columns = 2;  ///< likewise
  std::int64_t low_bytes = 0;      ///< only what reaches into this part of the axis ...
  std::int64_t high_bytes = INT64_MAX;
  std::size_t most_rects = 20'000;  ///< where there are more, smaller blocks are left to their bands
};

/// Each column is the stack at its highest moment, as in MemorySeries::columns: bands of all classes, from the ground
/// up. In a band its blocks lie in the order of their acquisition, the oldest lowest; those too small for a rectangle
/// are together on top of it. The work grows with the blocks in view that are large enough, and columns x rectangles in
/// one; not with the recording.
void draw_blocks(const MemorySeries& series, const BlockList& blocks, const MemoryClasses& classes,
                 const PixelRange& view, const BlockDetail& detail, BlockPicture& out);

/// The block drawn at a column and height, or kNone.
[[nodiscard]] std::uint32_t block_at(const BlockPicture& picture, const BlockList& blocks, std::int32_t column,
                                     std::int64_t bytes);

/// The class whose band is there, a place in MemoryClasses::all(), or kMostClasses: above the stack.
[[nodiscard]] std::size_t class_at(const BlockPicture& picture, std::int32_t column, std::int64_t bytes);

}  // namespace shard::view
