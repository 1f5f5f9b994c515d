// How the programs and the module that nvcc compiled (libshardscope_cuda.so) meet: one exported function and one table.
#pragma once

#include <memory>
#include <vector>

#include "executor/cuda/api/api.h"
#include "executor/cuda/api/machine.h"
#include "executor/cuda/api/nccl.h"
#include "executor/cuda/kernels/kernels.h"
#include "traces/base/result.h"

namespace shard::cuda {

/// Of all that crosses here: goes up when a header of this folder changes, and by itself with the list of kernels.
inline constexpr int kModuleVersion = 3000 + static_cast<int>(sizeof(Kernels) / sizeof(void (*)()));

/// What the module brings. Lives as long as the module, which is never unloaded.
struct ModuleTable {
  const char* refused = nullptr;  ///< why it cannot be used, of another version; then all else is null
  const Kernels* kernels = nullptr;
  /// The device of this number, counted as CUDA counts. Errc::unavailable without a driver that is new enough, or
  /// without such a device.
  Result<std::unique_ptr<Api>> (*open)(int device) = nullptr;
  /// Errc::unavailable as open().
  Result<MachineReport> (*inspect)() = nullptr;
  /// The libraries alone, for which there need be no driver.
  std::vector<LibraryReport> (*inspect_libraries)() = nullptr;
  /// Opens NCCL. Errc::unavailable where it is not found.
  Result<std::unique_ptr<Nccl>> (*open_nccl)() = nullptr;
};

/// The exported function. Neither opens a library nor asks for a driver.
inline constexpr const char* kModuleEntry = "shardscope_cuda_module";
using ModuleEntry = const ModuleTable* (*)(int version);

}  // namespace shard::cuda
