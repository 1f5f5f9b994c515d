// The greedy partition of ZeroRedundancyOptimizer.
#include "sim/like/zero_owners.h"

#include <algorithm>

#include "sim/compile/parameter_units.h"

namespace shard::like {

std::vector<std::int32_t> zero_owners(const ParameterList& parameters, std::int32_t world_size, OwnerOrder order) {
  if (order == OwnerOrder::largest_first) return plan::greedy_owners(parameters, world_size);
  std::vector<std::int64_t> load(static_cast<std::size_t>(world_size), 0);
  std::vector<std::int32_t> owners;
  for (const Parameter& parameter : parameters) {
    const auto least = std::min_element(load.begin(), load.end());
    owners.push_back(static_cast<std::int32_t>(least - load.begin()));
    *least += parameter.elems.count();
  }
  return owners;
}

}  // namespace shard::like
