// A request that fails here is a fault of the plan or of its interpreter, so every failure is Errc::internal.
#include "executor/comm/validate.h"

#include <algorithm>
#include <string>

#include "executor/comm/members.h"
#include "executor/comm/tree_sum.h"

namespace shard {
namespace {

bool overlap(std::int64_t a, std::int64_t a_bytes, std::int64_t b, std::int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

std::string rank_name(Rank rank) {
  return std::string("rank ").append(std::to_string(rank.value));
}

std::string describe(Collective kind, OpId op) {
  return std::string(to_string(kind)) + " op " + std::to_string(op.value);
}

std::string describe(RankGroup group) {
  if (group.count == 1) return rank_name(Rank{group.first});
  std::string text = "ranks ";
  for (std::int32_t member = 0; member < std::min(group.count - 1, 2); ++member)
    text += std::to_string(group.rank_of(member)) + ", ";
  if (group.count > 3) text += "..., ";
  return text + std::to_string(group.rank_of(group.count - 1));
}

Result<void> validate(const CollectiveRequest& request, Rank rank, int world, Bytes arena, const CommLimits& limits) {
  const auto wrong = [&](std::string what) {
    return Error{Errc::internal, std::move(what), rank_name(rank) + " " + describe(request.kind, request.op), ""};
  };
  if (request.segments.size() > static_cast<std::size_t>(limits.segments))
    return wrong(std::to_string(request.segments.size()) + " segments in one call, " + std::to_string(limits.segments) +
                 " planned");
  const RankGroup group = resolved(request.group, world);
  if (group.first < 0 || group.stride < 1 || group.count < 1 || group.stride > world ||
      group.first + static_cast<std::int64_t>(group.count - 1) * group.stride >= world)
    return wrong("a group of " + std::to_string(group.count) + " ranks from rank " + std::to_string(group.first) +
                 ", each " + std::to_string(group.stride) + " further, of " + std::to_string(world) + " ranks");
  if (!group.contains(rank.value)) return wrong("this rank is not among " + describe(group));
  // A kind without a root leaves it at rank 0, which need not be a member.
  const bool has_root = request.kind == Collective::broadcast || request.kind == Collective::reduce;
  if (has_root && !group.contains(request.root.value))
    return wrong("root " + std::to_string(request.root.value) + " is not among " + describe(group));
  const bool sums = request.kind != Collective::all_gather && request.kind != Collective::broadcast;
  if (sums && !is_summable(request.dtype)) return wrong(std::string("no sums of ") + to_string(request.dtype));
  const int members = group.count;
  const bool has_shard = request.kind == Collective::all_gather || request.kind == Collective::reduce_scatter;
  for (const CommSegment& segment : request.segments) {
    if (segment.elems.count() < 0) return wrong("a segment of negative size");
    if (has_shard && segment.elems.count() % members != 0)
      return wrong(std::to_string(segment.elems.count()) + " elements do not divide by " + std::to_string(members) +
                   " ranks");
    const std::int64_t full = bytes_of(request.dtype, segment.elems).count();
    const std::int64_t shard = has_shard ? full / members : 0;
    const std::int64_t element = bytes_of(request.dtype, Elems{1}).count();
    const auto inside = [&](std::int64_t offset, std::int64_t bytes) {
      return offset >= 0 && offset % element == 0 && bytes <= arena.count() && offset <= arena.count() - bytes;
    };
    if (!inside(segment.full_offset, full))
      return wrong("full buffer [" + std::to_string(segment.full_offset) + ", +" + std::to_string(full) +
                   ") is not inside the arena of " + std::to_string(arena.count()) + " bytes");
    if (!has_shard) continue;
    if (!inside(segment.shard_offset, shard))
      return wrong("shard [" + std::to_string(segment.shard_offset) + ", +" + std::to_string(shard) +
                   ") is not inside the arena of " + std::to_string(arena.count()) + " bytes");
    if (segment.shard_offset != segment.full_offset + group.member_of(rank.value) * shard &&
        overlap(segment.shard_offset, shard, segment.full_offset, full))
      return wrong("shard at " + std::to_string(segment.shard_offset) + " overlaps a full buffer at " +
                   std::to_string(segment.full_offset) + " and is not its own place");
  }
  return {};
}

}  // namespace shard
