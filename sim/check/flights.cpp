// Which collectives of a phase are in flight together, and whether their bytes are apart.
#include <algorithm>
#include <vector>

#include "sim/check/order.h"
#include "sim/strategy/topology.h"

namespace shard::plan::verification {
namespace {

[[nodiscard]] bool shares_bytes(const Plan& plan, const Op& a, const Op& b, std::int32_t shard) {
  return std::ranges::any_of(a.operands, [&](const Operand& x) {
    return std::ranges::any_of(b.operands, [&](const Operand& y) {
      const Range p = range_in_arena(plan, x, shard);
      const Range q = range_in_arena(plan, y, shard);
      return (x.writes() || y.writes()) && p.begin < q.end && q.begin < p.end;
    });
  });
}

void check_phase(const Plan& plan, const PhaseOps& phase, std::int32_t shard, Faults& faults) {
  std::vector<OpId> started;         // of collectives, ascending
  std::vector<const Op*> in_flight;  // in plan order
  for (const Op& op : phase.ops) {
    const auto* call = std::get_if<Communicate>(&op.action);
    if (call == nullptr) continue;
    faults.at(&phase, &op);
    if (call->behind.valid() && !std::ranges::binary_search(started, call->behind))
      faults.fail("P33", "starts behind what is no earlier collective of the phase");
    started.push_back(op.id);
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
