// Which flat's parameters a buffer holds, by the plan's own tables.
#pragma once

#include "sim/ir/plan.h"

namespace shard::plan::verification {

/// The flat whose parameters rest or are gathered in `buffer`; -1: of none.
[[nodiscard]] inline std::int32_t flat_in(const Plan& plan, BufferId buffer) {
  for (const std::vector<BufferId>* table : {&plan.flat_parameters, &plan.flat_gathered})
    for (std::size_t f = 0; f < table->size(); ++f)
      if ((*table)[f] == buffer) return static_cast<std::int32_t>(f);
  return -1;
}

}  // namespace shard::plan::verification
