// Time of a collective: a ring over all ranks, alpha-beta per step.
#pragma once

#include "sim/cluster/cluster.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::cost {

/// n ranks on N hosts in one ring that enters and leaves each host once. S bytes of the full buffer, B bus bandwidth
/// (the smaller of both links' where N > 1), a per step inside a host, A per step between hosts, t0 per call:
///   all-gather, reduce-scatter   t = t0 + (n - N) a + (N - 1) A + (n - 1) / n * S / B                              (1)
///   all-reduce                   t = t0 + 2 (n - N) a + 2 (N - 1) A + 2 (n - 1) / n * S / B                        (2)
///   broadcast, reduce            t = t0 + (n - N) a + (N - 1) A + S / B                                            (3)
/// n == 1 costs nothing. With one link, (1) is (n - 1) (a + S / (n B)), the textbook's.
/// Bandwidth factors: nccl-tests doc/PERFORMANCE.md. Steps over hosts and their latencies: NCCL 2.28 src/graph/
/// tuning.cc, ring: nInter = N - 1 of the n - 1 steps (twice both for all-reduce). (3) pipelines: NCCL cuts the buffer
/// into pieces that follow one another.
/// Not modelled: trees, in-network reduction, the low-latency protocols (small S is priced too high), sharing of links
/// or processors by collectives and kernels that overlap. Measured error: MODELS.md#collective.
[[nodiscard]] Seconds collective_time(Collective kind, Bytes full, const cluster::Cluster& cluster,
                                      const cluster::Layout& layout);

}  // namespace shard::cost
