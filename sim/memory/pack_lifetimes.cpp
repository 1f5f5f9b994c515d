// One pass over the events.
#include "sim/memory/pack_lifetimes.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "sim/memory/covered_moments.h"

namespace shard::packing {
namespace {

Error broken(std::string what, std::size_t event) {
  return Error{Errc::internal, std::move(what), "packing event " + std::to_string(event),
               "report this as a fault of the program"};
}

/// Lives as they end, to be sorted by item.
class Lives {
 public:
  explicit Lives(std::size_t items) : since_(items, 0) {}

  void acquire(Index item) {
    if (!acquiring_) ++moment_;
    acquiring_ = true;
    since_[item] = moment_;
  }
  void release(Index item) {
    acquiring_ = false;
    end(item);
  }
  void end(Index item) { ended_.push_back({item, {since_[item], moment_}}); }

  /// `covered`: moments to be left out, by number; empty: none.
  void leave_out(std::span<const std::uint8_t> covered) {
    if (covered.empty()) return;
    std::vector<std::int32_t> number;  // by moment: those kept before it
    number.reserve(covered.size() + 1);
    number.push_back(0);
    for (const std::uint8_t out : covered) number.push_back(number.back() + (out == 0 ? 1 : 0));
    for (auto& [item, life] : ended_)
      life = {number[static_cast<std::size_t>(life.first)], number[static_cast<std::size_t>(life.last) + 1] - 1};
    std::erase_if(ended_, [](const auto& ended) { return ended.second.first > ended.second.last; });
    moment_ = number.back() - 1;
  }

  void sort_into(Lifetimes& result) const {
    result.moments = moment_ + 1;
    std::vector<std::size_t> count(since_.size() + 1, 0);
    for (const auto& [item, life] : ended_) ++count[item];
    std::vector<std::size_t> at(count.size());
    std::exclusive_scan(count.begin(), count.end(), at.begin(), std::size_t{0});
    std::vector<Life> sorted(ended_.size());
    for (const auto& [item, life] : ended_) sorted[at[item]++] = life;
    // An item given back and taken again before any other is acquired has lived on.
    result.begin.assign(1, 0);
    result.begin.reserve(count.size());
    std::size_t from = 0;
    for (std::size_t item = 0; item + 1 < count.size(); ++item) {
      for (std::size_t i = from; i < from + count[item]; ++i) {
        if (i > from && result.lives.back().last + 1 >= sorted[i].first)
          result.lives.back().last = sorted[i].last;
        else
          result.lives.push_back(sorted[i]);
      }
      from += count[item];
      result.begin.push_back(result.lives.size());
    }
  }

 private:
  std::vector<std::int32_t> since_;  // of a live item
  std::vector<std::pair<Index, Life>> ended_;
  std::int32_t moment_ = -1;
  bool acquiring_ = false;
};

}  // namespace

Result<Lifetimes> read_lifetimes(std::span<const Offset> sizes, std::span<const PackEvent> events) {
  constexpr std::int64_t kNotLive = -1;
  const auto end = static_cast<std::int64_t>(events.size());
  Lifetimes result;
  result.held.assign(sizes.size(), 0);
  result.meets_all.assign(sizes.size(), false);
  result.pressure.assign(sizes.size(), 0);
  std::vector<std::int64_t> since(sizes.size(), kNotLive);
  std::vector<bool> known(sizes.size(), false);
  Lives lives(sizes.size());
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
      lives.acquire(item);
      if (!known[item]) result.acquired.push_back(item);
      known[item] = true;
      live_bytes += sizes[item];
      result.live_peak = std::max(result.live_peak, live_bytes);
      while (!highs.empty() && highs.back().second <= live_bytes) highs.pop_back();
      highs.emplace_back(now, live_bytes);
    } else {
      lived_until_now(item, now);
      lives.release(item);
      since[item] = kNotLive;
      live_bytes -= sizes[item];
      first_release = std::min(first_release, now);
    }
  }
  for (const Index item : result.acquired) {
    if (since[item] == kNotLive) continue;
    lived_until_now(item, end);
    lives.end(item);
    result.meets_all[item] = since[item] < first_release;
  }
  lives.leave_out(covered_moments(sizes, events));
  lives.sort_into(result);
  return result;
}

}  // namespace shard::packing
