// The device that tests run on: an emulated one, or with SHARDSCOPE_TEST_DEVICE=cuda the first GPU of this machine.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "executor/cuda/api/load.h"
#include "executor/cuda/emulated/emulated.h"
#include "executor/cuda/kernels/kernels.h"

namespace shard::cuda::test {

[[nodiscard]] inline bool on_gpu() {
  const char* const device = std::getenv("SHARDSCOPE_TEST_DEVICE");
  return device != nullptr && std::string_view(device) == "cuda";
}

/// With the kernels that run there. A GPU that was asked for and is not there ends the test.
[[nodiscard]] inline cuda::Device tested_device(const EmulatedOptions& options) {
  Result<cuda::Device> device = Error{};
  if (on_gpu()) {
    device = open_device(0);
  } else if (auto api = make_emulated(options); api) {
    device = cuda::Device{.api = std::move(*api), .kernels = &kernels()};
  } else {
    device = api.error();
  }
  if (!device) throw std::runtime_error("no device to test on: " + to_string(device.error()));
  return std::move(*device);
}

[[nodiscard]] inline const Kernels& tested_kernels() {
  if (!on_gpu()) return kernels();
  static const Kernels* const of_module = load_module().value()->kernels;
  return *of_module;
}

}  // namespace shard::cuda::test
