// Which part of a buffer each rank sums in an all_reduce or reduce.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/plan/comm_workspace.h"
#include "traces/base/units.h"

namespace shard {

/// Elements [begin, end) of a buffer.
struct ElemRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] constexpr std::int64_t size() const { return end - begin; }
};

/// Rank `rank`'s part of `elems` elements of `element_bytes` each: equal parts that begin at multiples of
/// kCommPartAlignment; the last ones may be short or empty.
[[nodiscard]] constexpr ElemRange part_of(Elems elems, std::int64_t rank, std::int64_t world,
                                          std::int64_t element_bytes) {
  const std::int64_t step = kCommPartAlignment.count() / element_bytes;
  const std::int64_t part = round_up(Elems{(elems.count() + world - 1) / world}, step).count();
  return {std::min(rank * part, elems.count()), std::min((rank + 1) * part, elems.count())};
}

}  // namespace shard
