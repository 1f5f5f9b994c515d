// Bytes in cells, cut where accesses begin and end.
#include "executor/cuda/emulated/access_history.h"

#include <algorithm>
#include <iterator>

namespace shard::cuda::emulated {

void AccessHistory::split(const std::byte* at) {
  auto after = cells_.upper_bound(at);
  if (after == cells_.begin()) return;
  auto& [begin, cell] = *std::prev(after);
  if (begin == at || cell.end <= at) return;
  Cell upper = cell;
  cell.end = at;
  cells_.emplace_hint(after, at, std::move(upper));
}

std::optional<Conflict> AccessHistory::add(const Access& access, const Stamp& stamp, const Ordered& ordered) {
  if (access.begin >= access.end) return std::nullopt;
  split(access.begin);
  split(access.end);
  std::optional<Conflict> conflict;
  const auto check = [&](const Stamp& before, bool writes, const std::byte* begin, const std::byte* end) {
    if (conflict || before.lane < 0 || ordered(before)) return;
    conflict = Conflict{before, writes, {begin, end, access.writes, stamp.op}};
  };
  const std::byte* at = access.begin;
  auto cell = cells_.lower_bound(at);
  while (at < access.end) {
    if (cell == cells_.end() || cell->first > at) {
      // Untouched so far.
      const std::byte* const end = cell == cells_.end() ? access.end : std::min(access.end, cell->first);
      cell = cells_.emplace_hint(cell, at, Cell{end, {}, {}});
    }
    Cell& touched = cell->second;
    check(touched.writer, true, at, touched.end);
    if (access.writes) {
      for (const Stamp& reader : touched.readers) check(reader, false, at, touched.end);
      touched.readers.clear();
      touched.writer = stamp;
    } else {
      const auto same =
          std::ranges::find_if(touched.readers, [&](const Stamp& reader) { return reader.lane == stamp.lane; });
      if (same == touched.readers.end()) {
        touched.readers.push_back(stamp);
      } else {
        *same = stamp;
      }
    }
    at = touched.end;
    ++cell;
  }
  return conflict;
}

std::optional<Conflict> AccessHistory::forget(const std::byte* begin, const std::byte* end, const Ordered& ordered) {
  split(begin);
  split(end);
  std::optional<Conflict> conflict;
  auto cell = cells_.lower_bound(begin);
  while (cell != cells_.end() && cell->first < end) {
    const Access access{cell->first, cell->second.end, true, {}};
    const Stamp& writer = cell->second.writer;
    if (!conflict && writer.lane >= 0 && !ordered(writer)) conflict = Conflict{writer, true, access};
    for (const Stamp& reader : cell->second.readers)
      if (!conflict && !ordered(reader)) conflict = Conflict{reader, false, access};
    cell = cells_.erase(cell);
  }
  return conflict;
}

std::vector<Access> AccessHistory::summary() const {
  std::vector<Access> all;
  for (const auto& [begin, cell] : cells_) {
    const bool writes = cell.writer.lane >= 0;
    const Op& op = writes ? cell.writer.op : cell.readers.front().op;
    const bool joins = !all.empty() && all.back().end == begin && all.back().writes == writes && all.back().op == op;
    if (joins) {
      all.back().end = cell.end;
    } else {
      all.push_back({begin, cell.end, writes, op});
    }
  }
  return all;
}

}  // namespace shard::cuda::emulated
