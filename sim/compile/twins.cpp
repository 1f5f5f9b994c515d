// Lifetimes, edges and offsets of one plan for another.
#include "sim/compile/twins.h"

#include <algorithm>

#include "sim/compile/passes/operands.h"
#include "sim/compile/stays.h"
#include "sim/ir/effects.h"

namespace shard::plan {
namespace {

[[nodiscard]] bool alike(const Buffer& a, const Buffer& b) {
  return a.memory == b.memory && a.persistent == b.persistent && (a.persistent || a.bytes == b.bytes);
}

/// The operand ends what its buffer held before.
[[nodiscard]] bool overwrites(const Plan& plan, const Operand& o) {
  return !o.reads() && is_whole(plan, o);
}

/// All that lifetimes, packing and edges are made from.
[[nodiscard]] bool alike(const Plan& plan_a, const Op& a, const Plan& plan_b, const Op& b) {
  if (a.id != b.id || a.stream != b.stream || a.part != b.part) return false;
  return std::ranges::equal(a.operands, b.operands, [&](const Operand& x, const Operand& y) {
    return x.buffer == y.buffer && x.access == y.access && x.fresh == y.fresh &&
           overwrites(plan_a, x) == overwrites(plan_b, y);
  });
}

[[nodiscard]] bool alike(const Plan& a, const Plan& b) {
  const auto ops_alike = [&](const Op& x, const Op& y) { return alike(a, x, b, y); };
  const auto phases_alike = [&](const PhaseOps& x, const PhaseOps& y) {
    return x.phase == y.phase && std::ranges::equal(x.ops, y.ops, ops_alike);
  };
  return std::ranges::equal(a.buffers, b.buffers, [](const Buffer& x, const Buffer& y) { return alike(x, y); }) &&
         std::ranges::equal(a.phases, b.phases, phases_alike);
}

}  // namespace

std::vector<std::size_t> first_twins(std::span<const Draft> plans) {
  std::vector<std::size_t> first(plans.size());
  std::vector<std::size_t> firsts;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const auto twin = std::ranges::find_if(firsts, [&](std::size_t other) { return alike(plans[p], plans[other]); });
    first[p] = twin == firsts.end() ? p : *twin;
    if (first[p] == p) firsts.push_back(p);
  }
  return first;
}

Draft allocate_like(Draft plan, const Plan& twin) {
  plan.pool = twin.pool;
  for (std::size_t p = 0; p < plan.phases.size(); ++p)
    for (std::size_t i = 0; i < plan.phases[p].ops.size(); ++i) {
      const Op& like = twin.phases[p].ops[i];
      Op& op = plan.phases[p].ops[i];
      op.dependencies = like.dependencies;
      op.acquire = like.acquire;
      op.release = like.release;
    }
  const Bases theirs = lay_what_stays(twin, [](BufferId, Bytes) {});
  const Bases ours = lay_what_stays(plan, [&](BufferId id, Bytes begin) { plan.buffer(id).offset = begin.count(); });
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    Buffer& buffer = plan.buffers[b];
    const auto memory = static_cast<std::size_t>(buffer.memory);
    if (!buffer.persistent && twin.buffers[b].offset >= 0)
      buffer.offset = twin.buffers[b].offset + (ours[memory] - theirs[memory]).count();
  }
  for (std::size_t m = 0; m < ours.size(); ++m) plan.arena_bytes[m] = twin.arena_bytes[m] + (ours[m] - theirs[m]);
  return plan;
}

}  // namespace shard::plan
