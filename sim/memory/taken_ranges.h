// Which bytes are taken at which moments: where an item of given lives finds room first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/memory/pack_lifetimes.h"

namespace shard::packing {

/// Ranges of bytes taken during lives, in a tree over the moments whose nodes keep the union of what is taken in all of
/// their moments, and of what is taken in any of them. First-fit packs densely, so a union of many ranges is a handful.
/// Putting or looking for one life visits O(log moments) nodes; memory is in proportion to moments and lives.
class TakenRanges {
 public:
  explicit TakenRanges(std::int32_t moments);

  /// Forgets all ranges.
  void clear();
  /// The lowest offset of `base` or above from which `size` bytes are free during all of these lives. size >= 1.
  [[nodiscard]] Offset first_fit(std::span<const Life> lives, Offset base, Offset size);
  /// Takes [begin, end) during these lives.
  void take(std::span<const Life> lives, Offset begin, Offset end);

  /// Nodes visited and ranges looked at so far: what the time is in proportion to.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  struct Range {
    Offset begin = 0;
    Offset end = 0;
  };
  using Ranges = std::vector<Range>;  // ascending, none touching another
  struct Node {
    Ranges always;  // taken in every moment of the node
    Ranges ever;    // taken in some moment of it
    std::uint32_t seen = 0;
  };
  struct Cursor {
    const Range* at = nullptr;
    const Range* end = nullptr;
  };

  void add(Ranges& ranges, Range added);
  void look_at(const Ranges& ranges);
  /// part(node) for the nodes that together are the moments of the lives, above(node) once for every node over them.
  template <class Part, class Above>
  void walk(std::span<const Life> lives, Part&& part, Above&& above);

  std::size_t leaves_ = 1;
  std::vector<Node> nodes_;  // root 1, children 2n and 2n + 1
  std::vector<Cursor> cursors_;
  std::uint32_t turn_ = 0;  // a node that `seen` equals has been visited
  std::int64_t steps_ = 0;
};

}  // namespace shard::packing
