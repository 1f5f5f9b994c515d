// Blocks of moments, and the tree over them.
#include "sim/memory/taken_ranges.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shard::packing {

TakenRanges::TakenRanges(std::int32_t moments)
    : blocks_(std::bit_ceil((static_cast<std::size_t>(std::max(moments, 1)) + kBlock - 1) / kBlock)),
      rows_(blocks_),
      nodes_(2 * blocks_) {}

void TakenRanges::clear() {
  for (Rows& rows : rows_) rows.clear();
  for (Node& node : nodes_) {
    node.always.clear();
    node.ever.clear();
  }
}

template <class Part, class Whole>
void TakenRanges::walk(const Life& life, Part&& part, Whole&& whole) const {
  const auto first = static_cast<std::uint32_t>(life.first), last = static_cast<std::uint32_t>(life.last);
  const std::size_t first_block = first / kBlock, last_block = last / kBlock;
  const Moments from = ~Moments{0} << first % kBlock;
  const Moments until = ~Moments{0} >> (kBlock - 1 - last % kBlock);
  if (first_block == last_block && ~(from & until) != 0) return part(first_block, from & until);
  std::size_t low = blocks_ + first_block, high = blocks_ + last_block + 1;
  if (~from != 0) part(low++ - blocks_, from);
  if (~until != 0) part(--high - blocks_, until);
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) whole(low++);
    if (high % 2 == 1) whole(--high);
  }
}

inline void TakenRanges::pass(Search& search, RangeCursor& cursor) {
  const Range* range = cursor.at;
  for (; range != cursor.end && range->begin < search.at + search.size; ++range)
    search.at = std::max(search.at, range->end);
  steps_ += range - cursor.at;
  cursor.at = range;
}

inline void TakenRanges::pass(Search& search, RowCursor& cursor) {
  const Row* row = cursor.at;
  if (row != cursor.end && row->top <= search.at) {
    row = std::upper_bound(row, cursor.end, search.at, [](Offset at, const Row& r) { return at < r.top; });
    ++steps_;
    cursor.at = row;
  }
  for (; row != cursor.end && row->range.begin < search.at + search.size; ++row)
    if ((row->when & cursor.when) != 0) search.at = std::max(search.at, row->range.end);
  steps_ += row - cursor.at;
  cursor.at = row;
}

inline void TakenRanges::look_at(Search& search, const Ranges& ranges) {
  ++steps_;
  if (ranges.empty() || ranges.back().end <= search.at) return;
  RangeCursor cursor{ranges.data(), ranges.data() + ranges.size()};
  pass(search, cursor);
  if (cursor.at != cursor.end) range_cursors_.push_back(cursor);
}

void TakenRanges::look_above(Search& search, std::size_t block) {
  std::size_t other = looked_above_;
  looked_above_ = blocks_ + block;
  for (std::size_t node = looked_above_; node != other; node /= 2, other /= 2) look_at(search, nodes_[node].always);
}

Offset TakenRanges::first_fit(std::span<const Life> lives, Offset base, Offset size) {
  assert(size >= 1);
  range_cursors_.clear();
  row_cursors_.clear();
  looked_above_ = 0;
  Search search{base, size};
  for (const Life& life : lives) {
    look_above(search, static_cast<std::size_t>(life.first / kBlock));
    look_above(search, static_cast<std::size_t>(life.last / kBlock));
    walk(
        life,
        [&](std::size_t block, Moments when) {
          ++steps_;
          const Rows& rows = rows_[block];
          if (!rows.empty()) row_cursors_.push_back({rows.data(), rows.data() + rows.size(), when});
        },
        [&](std::size_t node) { look_at(search, nodes_[node].ever); });
  }
  // Until nothing is in the way; each goes on where it was left, as the offset only rises.
  for (Offset from = -1; from != search.at;) {
    from = search.at;
    for (RangeCursor& cursor : range_cursors_) pass(search, cursor);
    for (RowCursor& cursor : row_cursors_) pass(search, cursor);
  }
  return search.at;
}

void TakenRanges::take(std::span<const Life> lives, Offset begin, Offset end) {
  assert(begin < end);
  const Range added{begin, end};
  for (const Life& life : lives)
    walk(
        life, [&](std::size_t block, Moments when) { add_row(block, added, when); },
        [&](std::size_t node) {
          add(nodes_[node].always, added);
          add_ever(node, added);
        });
}

void TakenRanges::add_row(std::size_t block, Range added, Moments when) {
  ++steps_;
  Rows& rows = rows_[block];
  auto row = std::lower_bound(rows.begin(), rows.end(), added, [](const Row& a, const Range& b) {
    return a.range.begin != b.begin ? a.range.begin < b.begin : a.range.end < b.end;
  });
  if (row != rows.end() && row->range.begin == added.begin && row->range.end == added.end) {
    row->when |= when;  // the nodes have it
    return;
  }
  const Offset below = row == rows.begin() ? 0 : std::prev(row)->top;
  row = rows.insert(row, Row{added, std::max(below, added.end), when});
  for (++row; row != rows.end() && row->top < added.end; ++row) row->top = added.end;
  add_ever(blocks_ + block, added);
}

void TakenRanges::add_ever(std::size_t node, Range added) {
  // What a node has, those above it have.
  while (node > 0 && add(nodes_[node].ever, added)) node /= 2;
}

bool TakenRanges::add(Ranges& ranges, Range added) {
  ++steps_;
  const auto first = std::lower_bound(ranges.begin(), ranges.end(), added.begin,
                                      [](const Range& range, Offset begin) { return range.end < begin; });
  if (first == ranges.end() || first->begin > added.end) {
    ranges.insert(first, added);
    return true;
  }
  if (first->begin <= added.begin && first->end >= added.end) return false;
  auto last = first;
  while (last != ranges.end() && last->begin <= added.end) {
    added.begin = std::min(added.begin, last->begin);
    added.end = std::max(added.end, last->end);
    ++last;
    ++steps_;
  }
  *first = added;
  ranges.erase(std::next(first), last);
  return true;
}

}  // namespace shard::packing
