// Which collectives of a phase are in flight together, and whether their bytes are apart.
#include <algorithm>
#include <vector>

#include "sim/check/order.h"
#include "sim/strategy/topology.h"

namespace shard::plan::verification {
namespace {

[[nodiscard]] bool shares_bytes(const Plan& plan, const Op& a, const Op& b, std::int32_t shard) {
  const auto in_arena = [&](const Operand& o) {
    const Range r = range_of(o, shard);
    const std::int64_t base = plan.buffer(o.buffer).offset;
    return Range{base + r.begin, base + r.end};
  };
  return std::ranges::any_of(a.operands, [&](const Operand& x) {
    return std::ranges::any_of(b.operands, [&](const Operand& y) {
      const Range p = in_arena(x);
      const Range q = in_arena(y);
      return (x.writes() || y.writes()) && p.begin < q.end && q.begin < p.end;
    });
  });
}

void check_phase(const Plan& plan, const PhaseOps& phase, std::int32_t shard, Faults& faults) {
  std::vector<const Op*> in_flight;  // in plan order
  for (const Op& op : phase.ops) {
    const auto* call = std::get_if<Communicate>(&op.action);
    if (call == nullptr) continue;
    faults.at(&phase, &op);
    if (call->behind >= op.id) faults.fail("P33", "starts behind itself or a later collective");
    std::erase_if(in_flight, [&](const Op* other) { return other->id <= call->behind; });
    for (const Op* other : in_flight)
      if (shares_bytes(plan, *other, op, shard))
        faults.fail("P33", "touches bytes of \"" + std::string(other->name) + "\", which may still be in flight");
    in_flight.push_back(&op);
    if (in_flight.size() > kCollectivesAtOnce)
      faults.fail("P33", "is one collective more than may be in flight at once");
    if (faults.failed()) return;
  }
}

}  // namespace

void check_flights(const Plan& plan, std::int32_t rank, Faults& faults) {
  const std::int32_t shard = position(plan.topology, rank).shard;
  for (const PhaseOps& phase : plan.phases) check_phase(plan, phase, shard, faults);
}

}  // namespace shard::plan::verification
