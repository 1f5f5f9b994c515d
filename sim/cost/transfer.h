// Time of moving bytes between memories.
#pragma once

#include <optional>

#include "sim/cluster/cluster.h"
#include "sim/cost/rates.h"
#include "traces/base/units.h"

namespace shard::cost {

/// Between host and device over their link:   t = L + a + S / B                                                    (1)
/// S bytes one way, B and a bandwidth and latency of the link, L launch overhead. Without a link the memories are one
/// and the copy reads and writes it:          t = L + 2 S / m                                                      (2)
/// PCIe reaches about 88 % of its specification, which the examples' figures hold already. Not modelled: other ranks on
/// the same switch or host memory; each direction has its own engine and does not disturb the other.
[[nodiscard]] constexpr Seconds transfer_time(Bytes bytes, const std::optional<cluster::HostLink>& link,
                                              const Rates& rates) {
  if (link) return rates.launch + link->latency + bytes / link->bandwidth;  // (1)
  return rates.launch + 2 * bytes / rates.memory;                           // (2)
}

}  // namespace shard::cost
