// Pass order: what ops of one stream need from another.
#include "sim/compile/dependencies.h"
#include "sim/compile/passes/passes.h"

namespace shard::plan {

Draft order(Draft plan) {
  for (PhaseOps& phase : plan.phases) order_buffers(plan, phase);
  return plan;
}

}  // namespace shard::plan
