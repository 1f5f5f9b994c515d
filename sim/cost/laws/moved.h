// Time of a kernel that memory decides: element by element, norms, losses, optimizers, casts.
#pragma once

#include "sim/cluster/cluster.h"
#include "traces/base/units.h"

namespace shard::cost {

/// floor + bytes / (share x bandwidth). Bytes read and written together; `reduces`: norms, softmax, sums over rows,
/// whose passes do not overlap as well. Measured error: MODELS.md#laws-of-kernels.
[[nodiscard]] inline Seconds moved_time(double bytes, const cluster::Cluster& card, bool reduces = false) {
  const cluster::MovedLaw& law = card.kernel_laws->moved;
  return Seconds{law.floor.count() +
                 bytes / (card.memory_bandwidth.count() * (reduces ? law.reduction_share : law.share))};
}

}  // namespace shard::cost
