// What there is of GPUs and of NVIDIA's libraries here.
#pragma once

#include "executor/cuda/api/machine.h"

namespace shard::cuda {

/// Errc::unavailable without a driver or a device.
[[nodiscard]] Result<MachineReport> inspect_machine();

/// cuBLASLt, cuDNN and NCCL, each with its version or why it is not there. Needs no driver.
[[nodiscard]] std::vector<LibraryReport> inspect_libraries();

}  // namespace shard::cuda
