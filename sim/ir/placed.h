// Where model data rests, unit by unit: what is decided once the plan's uses are known.
#pragma once

#include <vector>

#include "traces/base/ids.h"

namespace shard::plan {

/// What of one unit rests where: the decision of pass `place`, equal on all ranks.
struct Resting {
  Memory parameters = Memory::device;
  Memory gradients = Memory::device;
  Memory optimizer = Memory::device;
  friend bool operator==(const Resting&, const Resting&) = default;
};

struct Placed {
  std::vector<Resting> resting{};         ///< by unit
  std::vector<std::vector<bool>> held{};  ///< by unit, then by its fetches of a step: it is still there, left out
  friend bool operator==(const Placed&, const Placed&) = default;
};

}  // namespace shard::plan
