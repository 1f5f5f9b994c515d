// What the events of a packing say about each item: when it lives, how long, under what pressure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/memory/pack.h"
#include "traces/base/result.h"

namespace shard::packing {

using Index = std::uint32_t;
using Offset = std::int64_t;

/// Moments [first, last] at which an item is live. A moment is the end of a run of acquisitions: whatever is ever live
/// together is so at one of them; those that others cover are left out.
struct Life {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

struct Lifetimes {
  std::vector<std::int64_t> held;  ///< events during which the item is live
  std::vector<bool> meets_all;     ///< acquired before the first release, and never released
  std::vector<Index> acquired;     ///< items ever acquired, in order of their first acquisition
  std::vector<Offset> pressure;    ///< the most that is live at any moment of the item's
  Offset live_peak = 0;
  std::int32_t moments = 0;
  std::vector<Life> lives;         ///< item after item, each item's in order, none next to another of the same item
  std::vector<std::size_t> begin;  ///< items + 1: where an item's lives begin

  [[nodiscard]] std::span<const Life> lives_of(Index item) const {
    return std::span(lives).subspan(begin[item], begin[item + 1] - begin[item]);
  }
};

/// `sizes`: of the items, rounded to the alignment. Time and memory in proportion to events and items.
/// Errc::internal when an event names no item, acquires a live one or releases one that is not live.
[[nodiscard]] Result<Lifetimes> read_lifetimes(std::span<const Offset> sizes, std::span<const PackEvent> events);

}  // namespace shard::packing
