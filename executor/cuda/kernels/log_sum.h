// The logarithm of a sum of exponentials; included by kernels.
#pragma once

#include <limits>

#include "executor/cuda/kernels/device.h"
#include "executor/kernels/vector_math.h"

namespace shard::cuda {

/// ln of a sum whose largest term is 1. Infinity and what is not a number stay.
SHARD_DEVICE float log_of_sum(float sum) {
  return sum <= std::numeric_limits<float>::max() ? log_f32(sum) : sum;
}

}  // namespace shard::cuda
