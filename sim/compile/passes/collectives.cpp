// Builds the op of one collective over a unit's flats.
#include "sim/compile/passes/collectives.h"

#include <algorithm>
#include <utility>

#include "sim/compile/passes/operands.h"
#include "sim/target/comm_workspace.h"

namespace shard::plan {

Op make_collective(Plan& plan, Collective kind, Group group, std::string_view name, Part part, UnitId unit,
                   const std::vector<FlatPart>& parts) {
  Communicate call{.kind = kind, .unit = unit, .segments = {}, .group = group};
  std::vector<Operand> operands;
  std::vector<Segment> segments;
  const bool sharded = kind == Collective::all_gather || kind == Collective::reduce_scatter;
  Bytes largest{0};
  for (const FlatPart& p : parts) {
    Segment segment{.elems = Elems{p.full.bytes / element_bytes(plan, p.full.buffer)}};
    if (sharded) {
      segment.shard_operand = static_cast<std::int32_t>(operands.size());
      operands.push_back(p.shard);
    }
    segment.full_operand = static_cast<std::int32_t>(operands.size());
    operands.push_back(p.full);
    segments.push_back(segment);
    largest = std::max(largest, Bytes{p.full.bytes});
  }
  if (plan.strategy.transport == Transport::messages) {
    const Bytes staging = comm_workspace_bytes(kind, largest, size_of(plan.topology, group));
    if (staging.count() > 0) {
      const BufferId buffer =
          plan.add_buffer({.name = plan.text(name, ".staging"), .category = Category::communication, .bytes = staging});
      call.workspace_operand = static_cast<std::int32_t>(operands.size());
      operands.push_back(writes(plan, buffer));
    }
  }
  call.segments = plan.list(segments);
  return {.name = name, .part = part, .stream = Stream::communication, .action = call, .operands = plan.list(operands)};
}

namespace {

/// By the flats' owner, from where they rest on it.
Op send_from_owner(Plan& plan, const std::vector<std::int32_t>& flats, std::vector<FlatPart> parts,
                   std::string_view name, Part part) {
  const Flat& first = plan.flats[static_cast<std::size_t>(flats.front())];
  const bool own = first.owner == position(plan.topology, plan.rank).shard;
  for (FlatPart& p : parts) p.full.access = own ? Access::read : Access::write;
  Op op = make_collective(plan, Collective::broadcast, Group::shard, name, part, first.unit, parts);
  std::get<Communicate>(op.action).root = first.owner;
  return op;
}

}  // namespace

Op make_gather(Plan& plan, const std::vector<std::int32_t>& flats, std::string_view name, Part part) {
  const Flat& first = plan.flats[static_cast<std::size_t>(flats.front())];
  std::vector<FlatPart> parts;
  for (std::int32_t f : flats) {
    const auto index = static_cast<std::size_t>(f);
    parts.push_back({.flat = f, .full = writes(plan, plan.flat_gathered[index]), .shard = {}});
    if (first.owner < 0) parts.back().shard = reads(plan, plan.flat_parameters[index]);
  }
  if (first.owner >= 0) return send_from_owner(plan, flats, std::move(parts), name, part);
  return make_collective(plan, Collective::all_gather, Group::shard, name, part, first.unit, parts);
}

Op make_refresh(Plan& plan, const std::vector<std::int32_t>& flats, std::string_view name) {
  const Flat& first = plan.flats[static_cast<std::size_t>(flats.front())];
  std::vector<FlatPart> parts;
  for (std::int32_t f : flats) {
    const BufferId all = plan.flat_parameters[static_cast<std::size_t>(f)];
    parts.push_back({.flat = f, .full = updates(plan, all), .shard = own_part(plan, f, all, Access::read)});
  }
  if (first.owner >= 0) return send_from_owner(plan, flats, std::move(parts), name, Part::gather);
  return make_collective(plan, Collective::all_gather, Group::shard, name, Part::gather, first.unit, parts);
}

Operand own_part(const Plan& plan, std::int32_t flat, BufferId full, Access access) {
  const std::int64_t bytes =
      plan.flats[static_cast<std::size_t>(flat)].shard(plan.strategy.cuts()).count() * element_bytes(plan, full);
  const bool whole = plan.strategy.has_owners();
  return {.buffer = full, .offset = 0, .bytes = bytes, .rank_stride = whole ? 0 : bytes, .access = access};
}

}  // namespace shard::plan
