// Which units stay on the device when a share of their bytes may.
#pragma once

#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan {

/// By unit, for the policies device, host and static; for auto, with nothing kept that the user has not asked for. What
/// a rank holds of a unit is as large, up to a common factor, as its flats, so a fraction of elements is one of bytes.
/// Units are taken from the largest to the smallest, the first one first among equals, each one that keeps the sum at
/// or below the fraction.
[[nodiscard]] std::vector<Resting> rest_by_share(const Strategy& strategy, const std::vector<Flat>& flats,
                                                 const std::vector<Unit>& units);

/// Elements of each unit, padding included; without frozen parameters those that have gradients and optimizer state.
[[nodiscard]] std::vector<Elems> unit_elems(const std::vector<Flat>& flats, const std::vector<Unit>& units,
                                            bool frozen_too = true);

}  // namespace shard::plan
