// Pass pin: host memory of a device that copies from and to it while it computes is page-locked.
#include "sim/compile/passes/passes.h"

namespace shard::plan {

Draft pin(Draft plan) {
  if (!plan.target.pins()) return plan;
  for (Buffer& buffer : plan.buffers)
    if (buffer.memory == Memory::host) buffer.memory = Memory::pinned;
  return plan;
}

}  // namespace shard::plan
