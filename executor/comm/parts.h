// Which part of a buffer each member sums in an all_reduce or reduce.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/target/comm_workspace.h"
#include "traces/base/units.h"

namespace shard {

/// Elements [begin, end) of a buffer.
struct ElemRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] constexpr std::int64_t size() const { return end - begin; }
};

/// Member `member`'s part of `elems` elements of `element_bytes` each: equal parts that begin at multiples of
/// kCommPartAlignment; the last ones may be short or empty.
[[nodiscard]] constexpr ElemRange part_of(Elems elems, std::int64_t member, std::int64_t members,
                                          std::int64_t element_bytes) {
  const std::int64_t step = kCommPartAlignment.count() / element_bytes;
  const std::int64_t part = round_up(Elems{(elems.count() + members - 1) / members}, step).count();
  return {std::min(member * part, elems.count()), std::min((member + 1) * part, elems.count())};
}

}  // namespace shard
