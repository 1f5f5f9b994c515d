// A plan's collective as communicators are asked for it.
#pragma once

#include <cassert>
#include <vector>

#include "executor/comm/communicator.h"
#include "sim/ir/plan.h"
#include "sim/target/comm_workspace.h"

namespace shard::executor {

/// What a collective is of: its whole operands, of which ranks hold parts or sum.
[[nodiscard]] inline Bytes full_bytes(const plan::Plan& plan, const plan::Op& op, const plan::Communicate& call) {
  Bytes bytes{0};
  for (const plan::Segment& segment : call.segments)
    bytes +=
        bytes_of(plan.buffer(op.operands[static_cast<std::size_t>(segment.full_operand)].buffer).dtype, segment.elems);
  return bytes;
}

/// `offset(i)`: where operand i of the op begins in this rank's arena. `segments` holds the request's, and outlives it.
template <class Offset>
[[nodiscard]] CollectiveRequest request_of(const plan::Plan& plan, const plan::Op& op, const plan::Communicate& call,
                                           Rank rank, std::vector<CommSegment>& segments, const Offset& offset) {
  static_assert(kCallSegments <= static_cast<std::size_t>(CommLimits{}.segments));
  const bool sharded = call.kind == Collective::all_gather || call.kind == Collective::reduce_scatter;
  segments.clear();
  for (const plan::Segment& s : call.segments)
    segments.push_back({.shard_offset = sharded ? offset(s.shard_operand) : 0,
                        .full_offset = offset(s.full_operand),
                        .elems = s.elems});
  const auto operand = [&](std::int32_t i) -> const plan::Operand& { return op.operands[static_cast<std::size_t>(i)]; };
  const RankGroup group = plan::members(plan.topology, call.group, rank.value);
  CollectiveRequest request{.op = op.id,
                            .kind = call.kind,
                            .segments = segments,
                            .dtype = plan.buffer(operand(call.segments.front().full_operand).buffer).dtype,
                            .group = group,
                            .root = Rank{group.rank_of(call.root)},
                            .workspace_offset = 0,
                            .workspace = Bytes{0}};
  if (call.workspace_operand >= 0) {
    request.workspace_offset = offset(call.workspace_operand);
    request.workspace = Bytes{operand(call.workspace_operand).bytes};
  }
  return request;
}

}  // namespace shard::executor
