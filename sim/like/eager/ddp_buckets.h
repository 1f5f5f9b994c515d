// Which tensors DistributedDataParallel sends together: buckets by size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "traces/base/units.h"

namespace shard::like {

/// Tensors in order, each into the open bucket, which closes as soon as it holds its limit or more. The first bucket
/// has limits[0], the next limits[1], and so on; the last limit holds for all that follow. `limits` is not empty.
/// Returns the tensors' indices by bucket. Tensors of one type on one device.
/// Source: compute_bucket_assignment_by_size, torch/lib/c10d/reducer.cpp.
[[nodiscard]] std::vector<std::vector<std::size_t>> assign_buckets(std::span<const Bytes> tensors,
                                                                   std::span<const Bytes> limits);

}  // namespace shard::like
