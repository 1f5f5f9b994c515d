// Every pair of items that meet is written down: quadratic in time and memory, and plain.
#include "tests/memory/reference_pack.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

namespace shard {

namespace {

using Index = std::uint32_t;
using Offset = std::int64_t;
// An extent within 1/1024 of the live peak is not worth another order.
constexpr Offset kGoodEnough = 1024;

/// What the events say about each item.
struct Lifetimes {
  std::vector<std::int64_t> held;  // events during which the item is live
  std::vector<std::int32_t> acquisitions;
  std::vector<bool> meets_all;   // acquired before the first release, and never released
  std::vector<Index> acquired;   // items ever acquired, in order of their first acquisition
  std::vector<Offset> pressure;  // the most that is live at any moment of the item's
  Offset live_peak = 0;
};

/// Who is ever live together with whom, except for items that meet all others; rows one behind the other.
struct Conflicts {
  std::vector<std::size_t> begin;  // items + 1
  std::vector<Index> neighbours;   // a pair may appear twice, never more
};

Error broken(std::string what, std::size_t event) {
  return Error{Errc::internal, std::move(what), "packing event " + std::to_string(event),
               "report this as a fault of the program"};
}

Result<Lifetimes> read_lifetimes(std::span<const Offset> sizes, std::span<const PackEvent> events) {
  constexpr std::int64_t kNotLive = -1;
  const auto end = static_cast<std::int64_t>(events.size());
  Lifetimes result;
  result.held.assign(sizes.size(), 0);
  result.acquisitions.assign(sizes.size(), 0);
  result.meets_all.assign(sizes.size(), false);
  result.pressure.assign(sizes.size(), 0);
  std::vector<std::int64_t> since(sizes.size(), kNotLive);
  Offset live_bytes = 0;
  std::int64_t first_release = end;
  // (moment, live bytes), later ones smaller: the first at or after a moment is the most that was live since.
  std::vector<std::pair<std::int64_t, Offset>> highs;
  const auto lived_until_now = [&](Index item, std::int64_t now) {
    result.held[item] += now - since[item];
    const auto high = std::lower_bound(highs.begin(), highs.end(), std::pair{since[item], Offset{0}});
    result.pressure[item] = std::max(result.pressure[item], high->second);
  };
  for (std::int64_t now = 0; now < end; ++now) {
    const PackEvent& event = events[static_cast<std::size_t>(now)];
    if (event.item < 0 || static_cast<std::size_t>(event.item) >= sizes.size()) {
      return broken("there is no item " + std::to_string(event.item), static_cast<std::size_t>(now));
    }
    const auto item = static_cast<Index>(event.item);
    const bool live = since[item] != kNotLive;
    if (event.acquire == live) {
      return broken("item " + std::to_string(item) + (live ? " is live already" : " is not live"),
                    static_cast<std::size_t>(now));
    }
    if (event.acquire) {
      since[item] = now;
      if (result.acquisitions[item]++ == 0) result.acquired.push_back(item);
      live_bytes += sizes[item];
      result.live_peak = std::max(result.live_peak, live_bytes);
      while (!highs.empty() && highs.back().second <= live_bytes) highs.pop_back();
      highs.emplace_back(now, live_bytes);
    } else {
      lived_until_now(item, now);
      since[item] = kNotLive;
      live_bytes -= sizes[item];
      first_release = std::min(first_release, now);
    }
  }
  for (const Index item : result.acquired) {
    if (since[item] == kNotLive) continue;
    lived_until_now(item, end);
    result.meets_all[item] = since[item] < first_release;
  }
  return result;
}

/// An item meets whatever is live when it is acquired.
Conflicts find_conflicts(std::span<const Offset> sizes, std::span<const PackEvent> events, const Lifetimes& lifetimes) {
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
    std::vector<Index>* const known = lifetimes.acquisitions[item] > 1 ? &met[item] : nullptr;
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
std::vector<Offset> pack_others(std::span<const Offset> sizes, const Lifetimes& lifetimes, const Conflicts& conflicts,
                                std::vector<Index> others, Offset base, std::int32_t orders) {
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
  const Result<Lifetimes> lifetimes = read_lifetimes(sizes, events);
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
