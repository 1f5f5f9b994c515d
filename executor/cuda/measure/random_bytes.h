// Numbers for kernels to work on: what they are decides how much power a device takes, and so how fast it is.
#pragma once

#include "executor/cuda/measure/stopwatch.h"

namespace shard::cuda {

/// Memory of the device, freed with the device. Its elements, read as fp32, bf16 or fp16, are finite, of both signs and
/// at most 2 in size.
[[nodiscard]] Result<std::byte*> random_memory(Api& api, const Stopwatch& watch, Bytes bytes);

}  // namespace shard::cuda
