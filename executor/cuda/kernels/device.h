// What kernels are written with, for nvcc and for the emulated device: qualifiers, launches, shared memory, shuffles.
#pragma once

#include "executor/cuda/api/api.h"

// A kernel is written once:
//
//   template <class T>
//   SHARD_KERNEL scale_kernel(std::int64_t n, float factor, const T* x, T* y) {
//     for (std::int64_t i = first_element(); i < n; i += element_stride()) y[i] = from_f32<T>(to_f32(x[i]) * factor);
//   }
//   launch(stream, {.blocks_x = blocks_for(n), .threads = kThreads}, scale_kernel<float>, n, factor, x, y);
//
// threadIdx, blockIdx, blockDim, gridDim, __syncthreads(), __syncwarp(), __shfl_xor_sync(), __shfl_down_sync(),
// __shfl_sync(), atomicAdd() of 64-bit integers and atomicMin() are there in both, with CUDA's meaning. Nothing else of
// CUDA is: no exp, log or tanh of a library (executor/kernels/vector_math.h has them, with the same bits everywhere),
// no contraction into fused multiply-adds (nvcc is told -fmad=false), no atomics on floating point, no spinning. A fast
// variant for a card stands behind __CUDA_ARCH__ beside the plain one.

namespace shard::cuda {

/// Sizes of a launch.
struct Launch {
  std::uint32_t blocks_x = 1;
  std::uint32_t blocks_y = 1;
  std::uint32_t blocks_z = 1;
  std::uint32_t threads = 1;       ///< of a block, along x
  std::uint32_t shared_bytes = 0;  ///< of a block, what shared<T>() gives
};

inline constexpr int kWarp = 32;
inline constexpr std::uint32_t kThreads = 256;  ///< of a block, where nothing speaks for another number

/// Blocks of kThreads for n elements, each thread taking several where there are very many.
[[nodiscard]] constexpr std::uint32_t blocks_for(std::int64_t n) {
  constexpr std::int64_t kMost = 4096;
  const std::int64_t blocks = (n + kThreads - 1) / kThreads;
  return static_cast<std::uint32_t>(blocks < 1 ? 1 : blocks < kMost ? blocks : kMost);
}

}  // namespace shard::cuda

#if defined(__CUDACC__)
#include "executor/cuda/kernels/device_nvcc.h"
#else
#include "executor/cuda/emulated/device_host.h"
#endif

namespace shard::cuda {

/// Of a launch along x: this thread's first element, and from one of its elements to the next.
SHARD_DEVICE std::int64_t first_element() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
SHARD_DEVICE std::int64_t element_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace shard::cuda
