// Runs of ops that keep a unit on the device.
#include "sim/compile/passes/fetches.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shard::plan {

std::map<std::size_t, std::vector<UnitId>> fetch_points(const Plan& plan, const std::vector<Op>& ops,
                                                        const std::vector<UnitId>& unit_of) {
  std::set<std::pair<std::int32_t, std::int32_t>> recomputed;  // (micro-step, block)
  for (const Op& op : ops)
    if (op.part == Part::recompute) recomputed.insert({op.micro_step, op.block});
  struct Use {
    std::size_t op;
    std::size_t nth;  // among ops that use any unit
    std::pair<std::int32_t, std::int32_t> region;
  };
  std::vector<std::vector<Use>> uses(plan.units.size());
  std::size_t users = 0;
  std::vector<std::int32_t> touched;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    touched.clear();
    if (!std::holds_alternative<Compute>(ops[i].action)) continue;
    for (const Operand& o : ops[i].operands)
      if (const auto b = static_cast<std::size_t>(o.buffer.value); b < unit_of.size() && unit_of[b].valid())
        touched.push_back(unit_of[b].value);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    if (touched.empty()) continue;
    const bool backward = ops[i].part == Part::recompute || ops[i].part == Part::backward;
    std::pair<std::int32_t, std::int32_t> region{-1, -1};
    if (backward && recomputed.contains({ops[i].micro_step, ops[i].block})) region = {ops[i].micro_step, ops[i].block};
    for (std::int32_t u : touched) uses[static_cast<std::size_t>(u)].push_back({i, users, region});
    ++users;
  }
  const bool kept = plan.strategy.keep_gathered && plan.strategy.effective_stage() == 3;
  std::map<std::size_t, std::vector<UnitId>> points;
  for (std::size_t u = 0; u < uses.size(); ++u)
    for (std::size_t k = 0; k < uses[u].size(); ++k) {
      const Use& use = uses[u][k];
      const bool joined = k > 0 && (kept || use.nth == uses[u][k - 1].nth + 1 ||
                                    (use.region.first >= 0 && use.region == uses[u][k - 1].region));
      if (!joined) points[use.op].push_back(UnitId{static_cast<std::int32_t>(u)});
    }
  return points;
}

std::vector<Fetch> fetches_of(const Plan& plan, const std::vector<Op>& ops) {
  const bool gathered = plan.strategy.effective_stage() == 3;
  const auto fetched_by = [&](const Op& op) {
    if (op.part != Part::gather) return UnitId{};
    if (const auto* move = std::get_if<Copy>(&op.action)) return move->unit;
    if (const auto* absent = std::get_if<Absent>(&op.action); absent != nullptr && absent->flat >= 0)
      return plan.flats[static_cast<std::size_t>(absent->flat)].unit;
    if (const auto* call = std::get_if<Communicate>(&op.action)) return gathered ? call->unit : UnitId{};
    return UnitId{};
  };
  std::vector<Fetch> fetches;
  bool ended = true;  // a gather ends its fetch
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const UnitId unit = fetched_by(ops[i]);
    if (unit.valid()) {
      if (ended || fetches.back().unit != unit || fetches.back().end != i)
        fetches.push_back({.unit = unit, .begin = i, .end = i});
      fetches.back().end = i + 1;
    }
    ended = !unit.valid() || std::holds_alternative<Communicate>(ops[i].action);
  }
  return fetches;
}

}  // namespace shard::plan
