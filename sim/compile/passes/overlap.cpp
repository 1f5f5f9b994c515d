// Pass overlap: which collectives may be in flight together.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/compile/passes/passes.h"

namespace shard::plan {
namespace {

/// What an operand touches of the arena, on one rank or another of its class.
struct Touch {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool writes = false;
};

struct Flight {
  OpId id{};
  std::vector<Touch> touches;
};

[[nodiscard]] Flight flight_of(const Plan& plan, const Op& op) {
  Flight flight{.id = op.id, .touches = {}};
  for (const Operand& o : op.operands) {
    const std::int64_t first = plan.buffer(o.buffer).offset + o.offset;
    const std::int64_t last = first + (plan.topology.shard_degree - 1) * o.rank_stride;
    flight.touches.push_back(
        {.begin = std::min(first, last), .end = std::max(first, last) + o.bytes, .writes = o.writes()});
  }
  return flight;
}

[[nodiscard]] bool meet(const Flight& a, const Flight& b) {
  for (const Touch& x : a.touches)
    for (const Touch& y : b.touches)
      if ((x.writes || y.writes) && x.begin < y.end && y.begin < x.end) return true;
  return false;
}

/// `flights`: those before it in the phase, in plan order.
[[nodiscard]] OpId behind(const std::vector<Flight>& flights, const Flight& flight) {
  const std::size_t in_flight = std::min(flights.size(), kCollectivesAtOnce - 1);
  const auto end = flights.rbegin() + static_cast<std::ptrdiff_t>(in_flight);
  const auto met = std::find_if(flights.rbegin(), end, [&](const Flight& other) { return meet(other, flight); });
  if (met != end) return met->id;
  return end == flights.rend() ? OpId{} : end->id;
}

}  // namespace

Draft overlap(Draft plan) {
  for (PhaseOps& phase : plan.phases) {
    std::vector<Flight> flights;
    for (Op& op : phase.ops) {
      auto* call = std::get_if<Communicate>(&op.action);
      if (call == nullptr) continue;
      Flight flight = flight_of(plan, op);
      call->behind = behind(flights, flight);
      flights.push_back(std::move(flight));
    }
  }
  return plan;
}

}  // namespace shard::plan
