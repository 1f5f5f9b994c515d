// Which parameters lie in a part of a flat; how large a plan is.
#include "sim/ir/plan.h"

#include <algorithm>

namespace shard::plan {

std::vector<ParamRange> param_ranges(const Flat& flat, Elems begin, Elems end) {
  std::vector<ParamRange> ranges;
  for (const Flat::Item& item : flat.items) {
    const Elems first = std::max(begin, item.offset);
    const Elems last = std::min(end, item.offset + item.elems);
    if (first < last)
      ranges.push_back({.param = item.param, .first = first - item.offset, .offset = first, .elems = last - first});
  }
  return ranges;
}

ElemRange real_shard(const Flat& flat, std::int32_t shard_rank, std::int32_t shards) {
  if (flat.owner >= 0) return {.begin = Elems{0}, .end = flat.owner == shard_rank ? flat.used : Elems{0}};
  const ElemRange whole = shard_range(flat.elems, shard_rank, shards);
  return {.begin = std::min(whole.begin, flat.used), .end = std::min(whole.end, flat.used)};
}

bool is_worth_a_thread(const Plan& plan) {
  constexpr std::size_t kOps = 2000;
  std::size_t ops = 0;
  for (const PhaseOps& phase : plan.phases) ops += phase.ops.size();
  return ops >= kOps;
}

}  // namespace shard::plan
