// The plan verifier: structure first, then order and meaning, then what ranks must agree on.
#include "sim/check/verify.h"

#include <algorithm>

#include "sim/check/classes.h"
#include "sim/check/fault.h"
#include "sim/check/meaning.h"
#include "sim/check/order.h"
#include "sim/check/split.h"
#include "sim/check/structure.h"

namespace shard::plan {

Result<void> verify(const Plan& plan, Rank rank) {
  verification::Faults faults(rank.value);
  verification::check_structure(plan, rank.value, faults);
  // Meaning before order: a wrong operand is better explained by what it holds than by whom it races with.
  if (!faults.failed()) verification::check_meaning(plan, rank.value, faults);
  if (!faults.failed()) verification::check_order(plan, rank.value, faults);
  if (!faults.failed()) verification::check_flights(plan, rank.value, faults);
  if (!faults.failed()) verification::check_split(plan, rank.value, faults);
  return faults.result();
}

Result<void> verify(const Plan& plan) {
  return verify(plan, Rank{plan.rank});
}

Result<void> verify(const PlanSet& plans) {
  verification::Faults faults(0);
  verification::check_classes(plans, faults);
  if (faults.failed()) return faults.result();
  for (std::size_t c = 0; c < plans.classes.size(); ++c) {
    const auto index = static_cast<std::int32_t>(c);
    const auto& classes = plans.class_of_rank;
    const auto first = std::find(classes.begin(), classes.end(), index);
    if (first == classes.end()) continue;
    const auto last = std::find(classes.rbegin(), classes.rend(), index);
    const Rank ends[] = {Rank{static_cast<std::int32_t>(first - classes.begin())},
                         Rank{static_cast<std::int32_t>(classes.rend() - last) - 1}};
    if (Result<void> ok = verify(plans.classes[c], ends[0]); !ok) return ok;
    if (ends[1] == ends[0]) continue;
    if (Result<void> ok = verify(plans.classes[c], ends[1]); !ok) return ok;
  }
  return {};
}

}  // namespace shard::plan
