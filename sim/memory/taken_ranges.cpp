// The tree over moments.
#include "sim/memory/taken_ranges.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shard::packing {

TakenRanges::TakenRanges(std::int32_t moments)
    : leaves_(std::bit_ceil(static_cast<std::size_t>(std::max(moments, 1)))), nodes_(2 * leaves_) {}

void TakenRanges::clear() {
  for (Node& node : nodes_) {
    node.always.clear();
    node.ever.clear();
  }
}

template <class Part, class Above>
void TakenRanges::walk(std::span<const Life> lives, Part&& part, Above&& above) {
  ++turn_;
  const auto visit = [&](std::size_t index) {
    ++steps_;
    part(nodes_[index]);
    for (index /= 2; index > 0 && nodes_[index].seen != turn_; index /= 2) {
      nodes_[index].seen = turn_;
      ++steps_;
      above(nodes_[index]);
    }
  };
  for (const Life& life : lives) {
    std::size_t low = leaves_ + static_cast<std::size_t>(life.first);
    std::size_t high = leaves_ + static_cast<std::size_t>(life.last) + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) visit(low++);
      if (high % 2 == 1) visit(--high);
    }
  }
}

void TakenRanges::look_at(const Ranges& ranges) {
  if (!ranges.empty()) cursors_.push_back({ranges.data(), ranges.data() + ranges.size()});
}

Offset TakenRanges::first_fit(std::span<const Life> lives, Offset base, Offset size) {
  assert(size >= 1);
  cursors_.clear();
  walk(
      lives, [&](const Node& node) { look_at(node.ever); }, [&](const Node& node) { look_at(node.always); });
  Offset at = base;
  // Until all unions in a row have nothing in the way; each goes on where it was left, as the offset only rises.
  for (std::size_t clear = 0, next = 0; clear < cursors_.size();) {
    Cursor& cursor = cursors_[next];
    if (++next == cursors_.size()) next = 0;
    ++clear;
    for (; cursor.at != cursor.end && cursor.at->begin < at + size; ++cursor.at) {
      ++steps_;
      if (cursor.at->end <= at) continue;
      at = cursor.at->end;
      clear = 1;
    }
  }
  return at;
}

void TakenRanges::take(std::span<const Life> lives, Offset begin, Offset end) {
  assert(begin < end);
  const Range added{begin, end};
  walk(
      lives,
      [&](Node& node) {
        add(node.always, added);
        add(node.ever, added);
      },
      [&](Node& node) { add(node.ever, added); });
}

void TakenRanges::add(Ranges& ranges, Range added) {
  const auto first = std::lower_bound(ranges.begin(), ranges.end(), added.begin,
                                      [](const Range& range, Offset begin) { return range.end < begin; });
  auto last = first;
  while (last != ranges.end() && last->begin <= added.end) {
    added.begin = std::min(added.begin, last->begin);
    added.end = std::max(added.end, last->end);
    ++last;
    ++steps_;
  }
  if (first == last) {
    ranges.insert(first, added);
  } else {
    *first = added;
    ranges.erase(std::next(first), last);
  }
}

}  // namespace shard::packing
