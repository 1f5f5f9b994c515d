// Opens the module that nvcc compiled, and through it devices: all that programs link of CUDA.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "executor/cuda/api/module.h"

namespace shard::cuda {

/// Where the module may lie: SHARDSCOPE_CUDA_MODULE alone where it is set; else beside this program, in the folder
/// `lib` beside the program's, and where an installation has its libraries.
[[nodiscard]] std::vector<std::filesystem::path> module_places();

/// Opens the first of `places` that exists. Errc::unavailable where none does (a build without nvcc), where it cannot
/// be loaded, and where it is of another build.
[[nodiscard]] Result<const ModuleTable*> load_module(std::span<const std::filesystem::path> places);
/// Of module_places(), once.
[[nodiscard]] Result<const ModuleTable*> load_module();

/// A device, by CUDA's number, with its kernels.
struct Device {
  std::unique_ptr<Api> api{};
  const Kernels* kernels = nullptr;
};
/// Errc::unavailable without the module, without a driver that is new enough, or without that device: each says what
/// would help.
[[nodiscard]] Result<Device> open_device(int device);

}  // namespace shard::cuda
