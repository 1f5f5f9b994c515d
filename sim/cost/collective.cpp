// The ring equations.
#include "sim/cost/collective.h"

#include <algorithm>

namespace shard::cost {
namespace {

/// What the ring is made of.
struct Ring {
  double n = 1;
  Seconds base;
  Seconds one_way;  // latency of the n - 1 steps
  BytesPerSecond bandwidth;
};

Ring ring_of(const cluster::Cluster& cluster, const cluster::Layout& layout) {
  const double n = layout.ranks;
  const double hosts = layout.hosts;
  Ring ring{n, cluster.intra_host.base, (n - hosts) * cluster.intra_host.latency, cluster.intra_host.bus_bandwidth};
  if (layout.hosts > 1 && cluster.inter_host) {
    const cluster::Link& inter = *cluster.inter_host;
    ring.base = std::max(ring.base, inter.base);
    ring.one_way += (hosts - 1) * inter.latency;
    // A ring over hosts of one rank each never uses the inner link.
    ring.bandwidth = layout.ranks > layout.hosts ? std::min(ring.bandwidth, inter.bus_bandwidth) : inter.bus_bandwidth;
  }
  return ring;
}

}  // namespace

Seconds collective_time(Collective kind, Bytes full, const cluster::Cluster& cluster, const cluster::Layout& layout) {
  if (layout.ranks == 1) return Seconds{0};
  const Ring r = ring_of(cluster, layout);
  const Seconds all = full / r.bandwidth;
  const Seconds parts = (r.n - 1) / r.n * all;
  switch (kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter: return r.base + r.one_way + parts;          // (1)
    case Collective::all_reduce: return r.base + 2.0 * r.one_way + 2.0 * parts;  // (2)
    case Collective::broadcast:
    case Collective::reduce: return r.base + r.one_way + all;  // (3)
  }
  return Seconds{0};
}

}  // namespace shard::cost
