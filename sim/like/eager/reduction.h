// The hidden buffers of a reduction on the GPU.
#pragma once

#include <cstdint>

#include "sim/like/eager/tensor.h"

namespace shard::like::eager {

/// What kernels are chosen by.
struct Machine {
  std::int32_t compute_capability = 90;  ///< 10 * major + minor
  std::int32_t multiprocessors = 132;
  std::int32_t threads_per_multiprocessor = 2048;

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// Partial results, and one number per block of threads to count them; none where one pass does.
struct ReductionBuffers {
  Bytes partial{0};
  Bytes semaphores{0};
};

/// Of a reduction of `sizes` over dimensions `reduced` (bit i: dimension i), accumulated in fp32. Source:
/// aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig() and ReduceConfig::global_memory_size(); the buffer of a
/// reduction over rows is the library's own overestimate, a block's width times what is needed.
[[nodiscard]] ReductionBuffers reduction_buffers(const Dims& sizes, const Dims& strides, std::uint32_t reduced,
                                                 const Machine& machine);

}  // namespace shard::like::eager
