// The last backward operator of every unit.
#include "sim/compile/passes/step_order.h"

#include <variant>

namespace shard::plan {

std::vector<std::size_t> last_backward_of_units(const Draft& plan) {
  std::vector<UnitId> unit_of(plan.model->parameters.size());
  for (const Flat& flat : plan.flats)
    if (!flat.frozen)
      for (const Flat::Item& item : flat.items) unit_of[static_cast<std::size_t>(item.param.value)] = flat.unit;
  std::vector<std::size_t> last(plan.units.size(), 0);
  const std::vector<Op>& ops = plan.find(Phase::steady_step)->ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&ops[i].action);
    if (compute == nullptr || compute->direction == Direction::forward || compute->source < 0) continue;
    for (const model::ParamId param : plan.graph->operators[static_cast<std::size_t>(compute->source)].params)
      if (const UnitId unit = unit_of[static_cast<std::size_t>(param.value)]; unit.valid())
        last[static_cast<std::size_t>(unit.value)] = i;
  }
  return last;
}

}  // namespace shard::plan
