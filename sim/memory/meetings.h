// With how many others each item is ever live: what makes it hard to place late.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/memory/pack.h"

namespace shard::packing {

/// Per item, the others that are live when it is acquired, and those acquired while it is live, each counted once in
/// either role. Items that `counts` denies are left out.
/// Time: acquisitions x items / 64, in words of 64 items. Memory in proportion to items and events.
[[nodiscard]] std::vector<std::int64_t> count_meetings(std::size_t items, std::span<const PackEvent> events,
                                                       const std::vector<bool>& counts);

}  // namespace shard::packing
