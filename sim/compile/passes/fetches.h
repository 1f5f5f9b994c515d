// Where a unit has to be brought to the device before ops use it, and how long it stays there.
#pragma once

#include <map>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan {

/// By index of the op that needs them: the units to bring in front of it. `unit_of`: by buffer, the unit that an op
/// needs when it touches the buffer; invalid for all others. Neighbouring uses share a fetch, and so do all uses by one
/// block's recomputation and backward; where units are kept gathered, all of a step.
[[nodiscard]] std::map<std::size_t, std::vector<UnitId>> fetch_points(const Plan& plan, const std::vector<Op>& ops,
                                                                      const std::vector<UnitId>& unit_of);

/// A run of ops that bring one unit to the device: moves of its flats, and in stage 3 the gather behind them.
struct Fetch {
  UnitId unit{};
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// All of a step, in plan order. Refreshes are none.
[[nodiscard]] std::vector<Fetch> fetches_of(const Plan& plan, const std::vector<Op>& ops);

}  // namespace shard::plan
