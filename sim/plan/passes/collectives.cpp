// Builds the op of one collective over a unit's flats.
#include "sim/plan/passes/collectives.h"

#include <algorithm>
#include <utility>

#include "sim/plan/comm_workspace.h"
#include "sim/plan/passes/operands.h"

namespace shard::plan {

Op make_collective(Plan& plan, Collective kind, Group group, std::string name, Part part, UnitId unit,
                   const std::vector<FlatPart>& parts) {
  Communicate call{.kind = kind, .unit = unit, .segments = {}, .group = group};
  Op op{.name = std::move(name), .part = part, .stream = Stream::communication, .action = {}, .operands = {}};
  const bool sharded = kind == Collective::all_gather || kind == Collective::reduce_scatter;
  Bytes largest{0};
  for (const FlatPart& p : parts) {
    Segment segment{.elems = Elems{p.full.bytes / element_bytes(plan, p.full.buffer)}};
    if (sharded) {
      segment.shard_operand = static_cast<std::int32_t>(op.operands.size());
      op.operands.push_back(p.shard);
    }
    segment.full_operand = static_cast<std::int32_t>(op.operands.size());
    op.operands.push_back(p.full);
    call.segments.push_back(segment);
    largest = std::max(largest, Bytes{p.full.bytes});
  }
  if (plan.strategy.transport == Transport::messages) {
    const Bytes staging = comm_workspace_bytes(kind, largest, size_of(plan.strategy, group));
    if (staging.count() > 0) {
      const BufferId buffer =
          plan.add_buffer({.name = op.name + ".staging", .category = Category::communication, .bytes = staging});
      call.workspace_operand = static_cast<std::int32_t>(op.operands.size());
      op.operands.push_back(writes(plan, buffer));
    }
  }
  op.action = std::move(call);
  return op;
}

Operand own_part(const Plan& plan, std::int32_t flat, BufferId full, Access access) {
  const std::int64_t bytes = plan.flats[static_cast<std::size_t>(flat)].shard(plan.strategy.shard_degree()).count() *
                             element_bytes(plan, full);
  return {.buffer = full, .offset = 0, .bytes = bytes, .rank_stride = bytes, .access = access};
}

}  // namespace shard::plan
