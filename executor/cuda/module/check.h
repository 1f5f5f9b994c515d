// Errors of the CUDA runtime as Results, and whether there is a driver and a device to begin with.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "traces/base/result.h"

namespace shard::cuda {

/// What `call` said, in CUDA's words: does_not_fit where memory is short, else unavailable. The runtime forgets it.
[[nodiscard]] Error error_of(cudaError_t status, const char* call);

[[nodiscard]] inline Result<void> checked(cudaError_t status, const char* call) {
  if (status != cudaSuccess) return error_of(status, call);
  return {};
}

/// "13.0" of 13000.
[[nodiscard]] std::string version_text(int version);

/// What there is, where CUDA can be used at all.
struct Drivers {
  int driver = 0;   ///< the newest CUDA that it runs, 1000 x major + 10 x minor
  int devices = 0;  ///< at least 1
};
/// Errc::unavailable without a driver, with one that is too old, and without a device.
[[nodiscard]] Result<Drivers> find_devices();

}  // namespace shard::cuda
