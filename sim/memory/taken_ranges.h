// Which bytes are taken at which moments: where an item of given lives finds room first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/memory/pack_lifetimes.h"

namespace shard::packing {

/// Ranges of bytes taken during lives. Moments are in blocks of 64, whose rows say in a word at which of its moments a
/// range is taken: what comes and goes within a layer has the same place in each, and shares a row. Above the blocks is
/// a tree whose nodes keep the union of what is taken in all of their moments, and of what is taken in any of them;
/// first-fit packs densely, so a union of many ranges is a handful.
/// Putting or looking for one life takes two blocks and O(log moments) nodes; memory is in proportion to lives.
class TakenRanges {
 public:
  explicit TakenRanges(std::int32_t moments);

  /// Forgets all ranges.
  void clear();
  /// The lowest offset of `base` or above from which `size` bytes are free during all of these lives. size >= 1.
  [[nodiscard]] Offset first_fit(std::span<const Life> lives, Offset base, Offset size);
  /// Takes [begin, end) during these lives.
  void take(std::span<const Life> lives, Offset begin, Offset end);

  /// Nodes visited, rows and ranges looked at so far: what the time is in proportion to.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  using Moments = std::uint64_t;  // of a block
  static constexpr std::int32_t kBlock = 64;
  struct Range {
    Offset begin = 0;
    Offset end = 0;
  };
  using Ranges = std::vector<Range>;  // ascending, none touching another
  struct Row {
    Range range;
    Offset top = 0;  ///< the highest end of this and those before
    Moments when = 0;
  };
  using Rows = std::vector<Row>;  // ascending, of different ranges, which may overlap
  struct Node {
    Ranges always;  // taken in every moment of the node
    Ranges ever;    // taken in some moment of it
  };
  struct RangeCursor {
    const Range* at = nullptr;
    const Range* end = nullptr;
  };
  struct RowCursor {
    const Row* at = nullptr;
    const Row* end = nullptr;
    Moments when = 0;
  };
  /// The lowest offset from which `size` bytes are free in all that was looked at; it only rises.
  struct Search {
    Offset at = 0;
    Offset size = 0;
  };

  /// part(block, moments) for the blocks of which the life is a part, whole(node) for the nodes that together are the
  /// blocks between them.
  template <class Part, class Whole>
  void walk(const Life& life, Part&& part, Whole&& whole) const;
  void pass(Search& search, RangeCursor& cursor);
  void pass(Search& search, RowCursor& cursor);
  void look_at(Search& search, const Ranges& ranges);
  void look_above(Search& search, std::size_t block);
  /// False where all of it is taken already.
  bool add(Ranges& ranges, Range added);
  void add_row(std::size_t block, Range added, Moments when);
  void add_ever(std::size_t node, Range added);

  std::size_t blocks_ = 1;
  std::vector<Rows> rows_;   // by block: what is taken in some of its moments, not in all
  std::vector<Node> nodes_;  // root 1, children 2n and 2n + 1
  std::vector<RangeCursor> range_cursors_;
  std::vector<RowCursor> row_cursors_;
  std::size_t looked_above_ = 0;  // the node from which on upwards all have been looked at
  std::int64_t steps_ = 0;
};

}  // namespace shard::packing
