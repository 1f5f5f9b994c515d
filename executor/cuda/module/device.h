// A GPU behind Api: the CUDA runtime, cuBLASLt, and ranges for NVIDIA's profilers.
#pragma once

#include <memory>

#include "executor/cuda/api/api.h"

namespace shard::cuda {

/// The device of this number. Errc::unavailable without driver, device, or one of compute capability 8.0.
[[nodiscard]] Result<std::unique_ptr<Api>> open_real_device(int device);

/// The facts of one; the driver as find_devices() says.
[[nodiscard]] Result<DeviceFacts> facts_of(int device, int driver);

}  // namespace shard::cuda
