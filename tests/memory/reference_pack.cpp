// Every pair of items that meet is written down: quadratic in time and memory, and plain. When items live is read as
// the packer reads it; who meets whom is not.
#include "tests/memory/reference_pack.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "sim/memory/pack_lifetimes.h"

namespace shard {

namespace {

using packing::Index;
using packing::Offset;
// An extent within 1/1024 of the live peak is not worth another order.
constexpr Offset kGoodEnough = 1024;

/// Who is ever live together with whom, except for items that meet all others; rows one behind the other.
struct Conflicts {
  std::vector<std::size_t> begin;  // items + 1
  std::vector<Index> neighbours;   // a pair may appear twice, never more
};

/// An item meets whatever is live when it is acquired.
Conflicts find_conflicts(std::span<const Offset> sizes, std::span<const PackEvent> events,
                         const packing::Lifetimes& lifetimes) {
  std::vector<std::int32_t> acquisitions(sizes.size(), 0);
  for (const PackEvent& event : events)
    if (event.acquire) ++acquisitions[static_cast<std::size_t>(event.item)];
  std::vector<std::pair<Index, Index>> pairs;
  std::vector<std::size_t> degree(sizes.size() + 1, 0);
  std::vector<Index> live;
  std::vector<std::size_t> place(sizes.size(), 0);    // of a live item, in `live`
  std::unordered_map<Index, std::vector<Index>> met;  // by items that live more than once
  std::vector<std::uint32_t> mark(sizes.size(), 0);   // equal to `turn`: met before
  std::uint32_t turn = 0;
  for (const PackEvent& event : events) {
    const auto item = static_cast<Index>(event.item);
    if (lifetimes.meets_all[item] || sizes[item] == 0) continue;
    if (!event.acquire) {
      live[place[item]] = live.back();
      place[live.back()] = place[item];
      live.pop_back();
      continue;
    }
    std::vector<Index>* const known = acquisitions[item] > 1 ? &met[item] : nullptr;
    ++turn;
    if (known != nullptr) {
      for (const Index other : *known) mark[other] = turn;
    }
    for (const Index other : live) {
      if (mark[other] == turn) continue;
      if (known != nullptr) known->push_back(other);
      pairs.emplace_back(item, other);
      ++degree[item];
      ++degree[other];
    }
    place[item] = live.size();
    live.push_back(item);
  }
  Conflicts result;
  result.begin.resize(sizes.size() + 1);
  std::exclusive_scan(degree.begin(), degree.end(), result.begin.begin(), std::size_t{0});
  result.neighbours.resize(result.begin.back());
  std::vector<std::size_t> cursor(result.begin.begin(), result.begin.end() - 1);
  for (const auto& [a, b] : pairs) {
    result.neighbours[cursor[a]++] = b;
    result.neighbours[cursor[b]++] = a;
  }
  return result;
}

class Packer {
 public:
  Packer(std::span<const Offset> sizes, const Conflicts& conflicts, Offset base)
      : sizes_(sizes),
        conflicts_(conflicts),
        base_(base),
        offsets_(sizes.size()),
        best_offsets_(sizes.size()),
        taken_(sizes.size()) {}

  /// First-fit in this order; kept when better than all before. Gives up as soon as it cannot be.
  bool attempt(std::span<const Index> order) {
    std::fill(offsets_.begin(), offsets_.end(), kUnplaced);
    for (const Index item : order) taken_[item].clear();
    Offset extent = base_;
    for (const Index item : order) {
      const Offset size = sizes_[item];
      Offset at = base_;
      for (const Range& range : taken_[item]) {
        if (range.begin - at >= size) break;
        at = range.end;
      }
      offsets_[item] = at;
      extent = std::max(extent, at + size);
      if (extent >= best_extent_) return false;
      if (size == 0) continue;
      for (std::size_t n = conflicts_.begin[item]; n < conflicts_.begin[item + 1]; ++n) {
        const Index other = conflicts_.neighbours[n];
        if (offsets_[other] == kUnplaced) take(taken_[other], Range{at, at + size});
      }
    }
    best_extent_ = extent;
    best_offsets_ = offsets_;
    return true;
  }

  [[nodiscard]] Offset best_extent() const { return best_extent_; }
  [[nodiscard]] const std::vector<Offset>& best_offsets() const { return best_offsets_; }

 private:
  struct Range {
    Offset begin = 0;
    Offset end = 0;
  };
  static constexpr Offset kUnplaced = -1;

  // First-fit packs densely, so the union of many ranges is a handful of them.
  static void take(std::vector<Range>& ranges, Range added) {
    auto first = ranges.end();
    while (first != ranges.begin() && std::prev(first)->end >= added.begin) --first;
    auto last = first;
    while (last != ranges.end() && last->begin <= added.end) {
      added.begin = std::min(added.begin, last->begin);
      added.end = std::max(added.end, last->end);
      ++last;
    }
    if (first == last) {
      ranges.insert(first, added);
    } else {
      *first = added;
      ranges.erase(std::next(first), last);
    }
  }

  std::span<const Offset> sizes_;
  const Conflicts& conflicts_;
  Offset base_;
  std::vector<Offset> offsets_, best_offsets_;
  std::vector<std::vector<Range>> taken_;  // per unplaced item: what its placed neighbours cover, merged and sorted
  Offset best_extent_ = std::numeric_limits<Offset>::max();
};

/// Offsets, all at `base` or above, of the items in `others` (in order of first acquisition).
std::vector<Offset> pack_others(std::span<const Offset> sizes, const packing::Lifetimes& lifetimes,
                                const Conflicts& conflicts, std::vector<Index> others, Offset base,
                                std::int32_t orders) {
  Packer packer(sizes, conflicts, base);
  const auto attempt = [&](auto key) {  // the greatest key first, then the earlier acquired
    if (orders-- <= 0 || packer.best_extent() <= lifetimes.live_peak + lifetimes.live_peak / kGoodEnough) return;
    std::vector<Index> order = others;
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return key(a) > key(b); });
    packer.attempt(order);
  };
  attempt([&](Index item) { return std::pair{sizes[item], lifetimes.held[item]}; });
  attempt([&](Index item) { return std::pair{lifetimes.pressure[item], sizes[item]}; });
  attempt([&](Index item) {  // many neighbours make an item hard to place late
    return static_cast<double>(conflicts.begin[item + 1] - conflicts.begin[item]) * static_cast<double>(sizes[item]);
  });
  return packer.best_offsets();
}

}  // namespace

Result<Packing> reference_pack(std::span<const Bytes> items, std::span<const PackEvent> events,
                               const PackOptions& options) {
  std::vector<Offset> sizes;
  sizes.reserve(items.size());
  for (const Bytes bytes : items) sizes.push_back(round_up(bytes, options.alignment).count());
  const Result<packing::Lifetimes> lifetimes = packing::read_lifetimes(sizes, events);
  if (!lifetimes) return lifetimes.error();

  Packing result;
  result.offsets.assign(items.size(), Bytes{0});
  result.live_peak = Bytes{lifetimes->live_peak};
  std::vector<Index> others;
  for (const Index item : lifetimes->acquired) {
    if (!lifetimes->meets_all[item]) {
      others.push_back(item);
      continue;
    }
    result.offsets[item] = result.extent;
    result.extent += Bytes{sizes[item]};
  }
  const std::vector<Offset> offsets = pack_others(sizes, *lifetimes, find_conflicts(sizes, events, *lifetimes), others,
                                                  result.extent.count(), std::max(options.orders, 1));
  for (const Index item : others) {
    result.offsets[item] = Bytes{offsets[item]};
    result.extent = std::max(result.extent, Bytes{offsets[item] + sizes[item]});
  }
  return result;
}

}  // namespace shard
