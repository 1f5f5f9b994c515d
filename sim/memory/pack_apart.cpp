// First-fit around the items that stay, each item with the time after it, or without where that does not fit.
#include "sim/memory/pack_apart.h"

#include <algorithm>
#include <cassert>

#include "sim/memory/pack_lifetimes.h"
#include "sim/memory/taken_ranges.h"

namespace shard {
namespace {

using packing::Index;
using packing::Life;
using packing::Lifetimes;
using packing::Offset;

/// What is live while less than 1/so many of the live peak is free stays where it is: first-fit reached the extent
/// there, and would not reach it again in another order. The more stays, the surer the rest fits.
constexpr Offset kScarce[] = {1024, 64, 16, 4};

class Placer {
 public:
  Placer(const PackApart& request, std::vector<Offset> sizes, const Lifetimes& lifetimes)
      : request_(request),
        sizes_(std::move(sizes)),
        lifetimes_(lifetimes),
        staying_(lifetimes.moments),
        taken_(staying_) {
    for (const Index item : lifetimes.acquired)
      if (item < request.items.size() && sizes_[item] > 0 && !lifetimes.meets_all[item]) order_.push_back(item);
    std::ranges::stable_sort(order_, [&](Index a, Index b) {
      return std::pair{sizes_[a], lifetimes.held[a]} > std::pair{sizes_[b], lifetimes.held[b]};
    });
  }

  /// False where an item finds no room below the limit. The least scarce comes last: what stayed once, stays.
  bool attempt(Offset scarce) {
    offsets_.assign(request_.offsets.begin(), request_.offsets.end());
    const Offset much = lifetimes_.live_peak - lifetimes_.live_peak / scarce;
    std::erase_if(order_, [&](Index item) {
      if (request_.may_move[item] != 0 && lifetimes_.pressure[item] <= much) return false;
      staying_.take(lifetimes_.lives_of(item), offsets_[item].count(), offsets_[item].count() + sizes_[item]);
      return true;
    });
    taken_ = staying_;
    return std::ranges::all_of(order_, [&](Index item) { return place(item); });
  }

  [[nodiscard]] std::vector<Bytes> offsets() && { return std::move(offsets_); }

 private:
  bool place(Index item) {
    const std::span<const Life> own = lifetimes_.lives_of(item);
    if (const std::int32_t after = request_.after[item]; after >= 0) {
      const std::span<const Life> later = lifetimes_.lives_of(static_cast<Index>(after));
      lives_.resize(own.size() + later.size());
      std::ranges::merge(own, later, lives_.begin(), {}, &Life::first, &Life::first);
      if (fits(lives_, item)) return true;
    }
    return fits(own, item);
  }
  bool fits(std::span<const Life> lives, Index item) {
    // What lies below is live from the start of the run to its end, and is not looked at.
    const Offset at = taken_.first_fit(lives, base(), sizes_[item]);
    if (at + sizes_[item] > request_.limit.count()) return false;
    offsets_[item] = Bytes{at};
    taken_.take(lives, at, at + sizes_[item]);
    return true;
  }
  [[nodiscard]] Offset base() {
    if (base_ < 0) {
      base_ = 0;
      for (const Index item : lifetimes_.acquired)
        if (item < request_.items.size() && lifetimes_.meets_all[item])
          base_ = std::max(base_, request_.offsets[item].count() + sizes_[item]);
    }
    return base_;
  }

  const PackApart& request_;
  std::vector<Offset> sizes_;  // by item; 0 for the times after
  const Lifetimes& lifetimes_;
  packing::TakenRanges staying_, taken_;
  std::vector<Index> order_;  // those that may move
  std::vector<Bytes> offsets_;
  std::vector<Life> lives_;
  Offset base_ = -1;
};

}  // namespace

std::optional<std::vector<Bytes>> pack_apart(const PackApart& request) {
  std::vector<Offset> sizes;
  for (const Bytes bytes : request.items) sizes.push_back(round_up(bytes, request.alignment).count());
  std::int32_t last = -1;
  for (const std::int32_t after : request.after) last = std::max(last, after);
  sizes.resize(std::max(sizes.size(), static_cast<std::size_t>(last + 1)), 0);
  const Result<Lifetimes> lifetimes = packing::read_lifetimes(sizes, request.events);
  assert(lifetimes && "the packing has read these events");
  Placer placer(request, std::move(sizes), *lifetimes);
  for (const Offset scarce : kScarce)
    if (placer.attempt(scarce)) return std::move(placer).offsets();
  return std::nullopt;
}

}  // namespace shard
