// Units as they are gathered, fields as the strategy's table has them.
#include "sim/record/header.h"

#include <cstddef>
#include <string>
#include <variant>

#include "sim/strategy/fields.h"
#include "traces/base/dtype.h"

namespace shard::record {
namespace {

/// Whether a field is more than a bool that the strategy's line leaves out.
bool telling(const plan::Field& field, const plan::Strategy& strategy) {
  if (!field.text.shown(strategy)) return false;
  const auto* flag = std::get_if<plan::Member<bool>>(&field.place);
  return flag == nullptr || !(flag->of(strategy) ? field.text.word : field.text.otherwise).empty();
}

}  // namespace

Header header_of(const plan::PlanSet& plans) {
  Header header;
  header.world_size = static_cast<std::int32_t>(plans.class_of_rank.size());
  header.plan_hash = plans.hash;
  header.parent_plan_hash = plans.parent_hash;
  if (plans.classes.empty()) return header;
  // Units and strategy are equal on all ranks.
  const plan::Plan& plan = plans.classes.front();
  if (plan.model) header.metadata["model"] = plan.model->name;
  for (const plan::Field& field : plan::fields()) {
    const bool set = !std::holds_alternative<std::nullptr_t>(json_value(field, plan.strategy));
    header.strategy.push_back(
        {std::string(field.key), set ? value_text(field, plan.strategy) : "", telling(field, plan.strategy)});
  }
  for (const plan::Unit& unit : plan.units) {
    Elems elems{};
    for (const std::int32_t flat : unit.flats) elems += plan.flats[static_cast<std::size_t>(flat)].elems;
    header.units.push_back({unit.name, elems.count(), elems.count() * bytes_per_element(plan.target.storage)});
  }
  return header;
}

}  // namespace shard::record
