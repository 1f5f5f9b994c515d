// The hash that joins a plan, its predictions and its measurements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan {

/// 128 bits (XXH3) over every field of every op and touched buffer of all classes, the model's name, the strategy, and
/// which rank is in which class; 32 hex digits. All classes are of one compilation. Equal on every machine of one byte
/// order.
[[nodiscard]] std::string hash_of(const std::vector<Plan>& classes, const std::vector<std::int32_t>& class_of_rank);

}  // namespace shard::plan
