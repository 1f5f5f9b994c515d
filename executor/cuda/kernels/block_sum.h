// Sums over the threads of a block, by trees that only their number decides; included by kernels.
#pragma once

#include <cstdint>

#include "executor/cuda/kernels/device.h"

namespace shard::cuda {

inline constexpr std::uint32_t kAllLanes = 0xFFFFFFFFU;
inline constexpr std::uint32_t kMostWarps = 32;  ///< of a block

/// Sum over the lanes of a warp, in each of them; all of them call it.
template <class T>
SHARD_DEVICE T warp_sum(T value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = value + __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

/// Sum over the threads of a block of whole warps, in each of them; all of them call it. `partials`: shared memory, one
/// T a warp, that nothing else touches between the barriers before and behind this call. One warp needs none.
template <class T>
SHARD_DEVICE T block_sum(T value, T* partials) {
  value = warp_sum(value);
  const std::uint32_t warps = blockDim.x / kWarp;
  if (warps == 1) return value;
  if (threadIdx.x % kWarp == 0) partials[threadIdx.x / kWarp] = value;
  __syncthreads();
  T total = partials[0];
  for (std::uint32_t w = 1; w < warps; ++w) total = total + partials[w];
  return total;
}

}  // namespace shard::cuda
