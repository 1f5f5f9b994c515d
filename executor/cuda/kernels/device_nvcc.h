// What kernels are written with, as nvcc has it; included by device.h alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#define SHARD_KERNEL static __global__ void
#define SHARD_DEVICE __device__ inline __attribute__((always_inline))

// CMake before 3.26 leaves the request for it out without a word.
static_assert(__cplusplus >= 202002L, "nvcc was not told to compile C++20");

namespace shard::cuda {

/// The block's shared memory, Launch::shared_bytes of it, aligned to 16; holds nothing yet.
template <class T>
SHARD_DEVICE T* shared() {
  extern __shared__ __align__(16) unsigned char shard_shared_memory[];
  return reinterpret_cast<T*>(shard_shared_memory);
}

/// Enqueues kernel(args...). A launch that fails is told by Api::end_op.
template <class... P, class... A>
void launch(Stream stream, const Launch& sizes, void (*kernel)(P...), A... args) {
  constexpr std::uint32_t kWithoutAsking = 48 * 1024;
  if (sizes.shared_bytes > kWithoutAsking)
    cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(sizes.shared_bytes));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(sizes.blocks_x, sizes.blocks_y, sizes.blocks_z);
  config.blockDim = dim3(sizes.threads, 1, 1);
  config.dynamicSmemBytes = sizes.shared_bytes;
  config.stream = reinterpret_cast<cudaStream_t>(stream);
  cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
}

}  // namespace shard::cuda
