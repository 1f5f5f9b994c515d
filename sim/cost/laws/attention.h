// Time of causal attention on a GPU, forward and backward, by who wrote the kernel.
#pragma once

#include <cstdint>

#include "sim/cluster/cluster.h"
#include "traces/base/units.h"

namespace shard::cost {

struct AttentionShape {
  std::int64_t batch = 0, heads = 0, queries = 0, keys = 0, head_size = 0;
  bool causal = true;
  bool backward = false;
};

/// t = 8 us + F / (P e / (1 + r / S) o): F the products that causality leaves, two forward and five backward; e and r
/// of AttentionLaw; o the share of multiprocessors that blocks of 128 queries fill; heads of 64 and less reach 0.85.
/// A kernel of which the laws say nothing has flash_2's; `card` has kernel_laws. Holds from some 1,024 queries: fewer
/// than 128 take up to 2.5 times that, and decoding (one query, many keys) is not modelled. Measured error:
/// MODELS.md#laws-of-kernels.
[[nodiscard]] Seconds attention_time(const AttentionShape& shape, cluster::AttentionKernel kernel,
                                     const cluster::Cluster& card);

}  // namespace shard::cost
