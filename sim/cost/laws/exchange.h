// Time of a collective between GPUs, by NCCL's protocols inside of a host and by rings and trees between hosts.
#pragma once

#include <cstdint>

#include "sim/cluster/cluster.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::cost {

/// Where the members of a group lie: `ranks` of them, each `stride` ranks from the last; ranks fill hosts in order.
struct Members {
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
};

/// Of `bytes` of the full buffer. Inside of a host the fastest of the card's protocols: base + (n - 1) per_rank + w /
/// B, w = (n - 1) / n bytes, twice that for an all-reduce. Between hosts a ring of 4.5 us a hop at 0.92 of what the
/// adapters of the members of one host carry together, at most what the host's own links do; an all-reduce may take
/// NCCL's double tree, whose hops are the logarithm of the hosts. One rank costs nothing. Holds for all ranks of a
/// host: two and four reach 0.7 and 0.9 of that with large buffers. Measured error: MODELS.md#laws-of-kernels.
[[nodiscard]] Seconds exchange_time(Collective kind, double bytes, Members members, const cluster::Cluster& cluster);

}  // namespace shard::cost
