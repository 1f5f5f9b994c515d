// What PyTorch 1.8's DistributedDataParallel and optimizers do that decides memory, as numbers that a test can change.
#pragma once

#include <cstdint>

#include "traces/base/units.h"

namespace shard::like {

/// In which order a greedy partition deals parameters out.
enum class OwnerOrder : std::uint8_t {
  registration,   ///< as the optimizer got them: PyTorch 1.8 and 1.9
  largest_first,  ///< by size: PyTorch 1.10 on (pytorch/pytorch pull request 59586, June 2021)
};

/// Sources, all of the 1.8 line: torch/nn/parallel/distributed.py (broadcast_bucket_size, bucket_cap_mb),
/// torch/lib/c10d/reducer.hpp (kDefaultFirstBucketBytes), torch/lib/c10d/comm.cpp (max_in_flight),
/// torch/distributed/optim/zero_redundancy_optimizer.py (partition_parameters), torch/optim/_functional.py (adam).
struct Rules {
  Bytes broadcast_bucket{250 << 20};  ///< DDP's constructor sends the module's state in buckets of this limit
  std::int32_t broadcasts_in_flight = 2;
  Bytes first_bucket{1 << 20};  ///< limit of the first gradient bucket
  Bytes bucket{25 << 20};       ///< and of all others
  OwnerOrder owner_order = OwnerOrder::registration;
  /// Adam and AdamW: the root of the second moment, and its quotient that becomes the denominator.
  std::int32_t adam_temporaries = 2;
};

}  // namespace shard::like
