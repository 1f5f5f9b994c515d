// The plans of all ranks of a run: one per class of equal ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan {

/// Plans of all ranks of a run. Ranks whose plans are equal share one.
struct PlanSet {
  std::vector<Plan> classes;
  std::vector<std::int32_t> class_of_rank;  ///< index into classes, one per rank
  std::string hash;                         ///< hash_of() them (hash.h)
  std::string parent_hash{};                ///< of the plan whose measurement this one was made from; empty for none
  [[nodiscard]] const Plan& of_rank(std::int32_t rank) const {
    return classes[static_cast<std::size_t>(class_of_rank[static_cast<std::size_t>(rank)])];
  }
};

}  // namespace shard::plan
