// Greedy first-fit over several orders; the smallest extent wins.
#include "sim/memory/pack.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/memory/meetings.h"
#include "sim/memory/pack_lifetimes.h"
#include "sim/memory/taken_ranges.h"

namespace shard {

namespace {

using packing::Index;
using packing::Lifetimes;
using packing::Offset;
// An extent within 1/1024 of the live peak is not worth another order.
constexpr Offset kGoodEnough = 1024;

class Packer {
 public:
  Packer(std::span<const Offset> sizes, const Lifetimes& lifetimes, Offset base)
      : sizes_(sizes),
        lifetimes_(lifetimes),
        base_(base),
        offsets_(sizes.size()),
        best_offsets_(sizes.size()),
        taken_(lifetimes.moments) {}

  /// First-fit in this order; kept when better than all before. Gives up as soon as it cannot be.
  bool attempt(std::span<const Index> order) {
    taken_.clear();
    Offset extent = base_;
    for (const Index item : order) {
      const Offset size = sizes_[item];
      const auto lives = lifetimes_.lives_of(item);
      const Offset at = size == 0 ? base_ : taken_.first_fit(lives, base_, size);
      offsets_[item] = at;
      extent = std::max(extent, at + size);
      if (extent >= best_extent_) return false;
      if (size > 0) taken_.take(lives, at, at + size);
    }
    best_extent_ = extent;
    best_offsets_ = offsets_;
    return true;
  }

  [[nodiscard]] Offset best_extent() const { return best_extent_; }
  [[nodiscard]] const std::vector<Offset>& best_offsets() const { return best_offsets_; }
  [[nodiscard]] std::int64_t steps() const { return taken_.steps(); }

 private:
  std::span<const Offset> sizes_;
  const Lifetimes& lifetimes_;
  Offset base_;
  std::vector<Offset> offsets_, best_offsets_;
  packing::TakenRanges taken_;
  Offset best_extent_ = std::numeric_limits<Offset>::max();
};

}  // namespace

Result<Packing> pack(std::span<const Bytes> items, std::span<const PackEvent> events, const PackOptions& options) {
  std::vector<Offset> sizes;
  sizes.reserve(items.size());
  for (const Bytes bytes : items) sizes.push_back(round_up(bytes, options.alignment).count());
  const Result<Lifetimes> read = packing::read_lifetimes(sizes, events);
  if (!read) return read.error();
  const Lifetimes& lifetimes = *read;

  Packing result;
  result.offsets.assign(items.size(), Bytes{0});
  result.live_peak = Bytes{lifetimes.live_peak};
  std::vector<Index> others;
  for (const Index item : lifetimes.acquired) {
    if (!lifetimes.meets_all[item]) {
      others.push_back(item);
      continue;
    }
    result.offsets[item] = result.extent;
    result.extent += Bytes{sizes[item]};
  }

  Packer packer(sizes, lifetimes, result.extent.count());
  std::int32_t orders = std::max(options.orders, 1);
  const auto wanted = [&] {
    return orders-- > 0 && packer.best_extent() > lifetimes.live_peak + lifetimes.live_peak / kGoodEnough;
  };
  const auto attempt = [&](auto key) {  // the greatest key first, then the earlier acquired
    std::vector<Index> order = others;
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return key(a) > key(b); });
    packer.attempt(order);
  };
  if (wanted()) attempt([&](Index item) { return std::pair{sizes[item], lifetimes.held[item]}; });
  if (wanted()) attempt([&](Index item) { return std::pair{lifetimes.pressure[item], sizes[item]}; });
  if (wanted()) {  // many neighbours make an item hard to place late
    std::vector<bool> counts(items.size());
    for (std::size_t item = 0; item < counts.size(); ++item)
      counts[item] = sizes[item] > 0 && !lifetimes.meets_all[item];
    const std::vector<std::int64_t> met = packing::count_meetings(items.size(), events, counts);
    attempt([&](Index item) { return static_cast<double>(met[item]) * static_cast<double>(sizes[item]); });
  }
  for (const Index item : others) {
    result.offsets[item] = Bytes{packer.best_offsets()[item]};
    result.extent = std::max(result.extent, Bytes{packer.best_offsets()[item] + sizes[item]});
  }
  result.steps = packer.steps();
  return result;
}

}  // namespace shard
