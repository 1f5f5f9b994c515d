// Words for what the CUDA runtime reports.
#include "executor/cuda/module/check.h"

#include <cstdlib>

namespace shard::cuda {
namespace {

/// The driver that first ran this major version of CUDA, and runs all of its minor versions (CUDA's release notes,
/// table "Minor Version Compatibility").
constexpr const char* kDriverNeeded = CUDART_VERSION >= 13000 ? "580" : "525";
static_assert(CUDART_VERSION >= 12000 && CUDART_VERSION < 14000, "which driver does this CUDA need?");

std::string needed() {
  return "CUDA " + version_text(CUDART_VERSION) + ", which this build uses, needs driver " + kDriverNeeded +
         " or newer";
}

/// The smallest change that helps, where one is known.
std::string help_of(cudaError_t status) {
  if (status == cudaErrorMemoryAllocation)
    return "a smaller model or batch; shardscope inspect --device cuda says who else uses the GPU";
  if (status == cudaErrorIllegalAddress || status == cudaErrorMisalignedAddress || status == cudaErrorLaunchFailure)
    return "--device emulated-cuda finds which operator it is";
  if (status == cudaErrorDevicesUnavailable) return "shardscope inspect --device cuda says who else uses it";
  return "";
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Error error_of(cudaError_t status, const char* call) {
  cudaGetLastError();
  return {.code = status == cudaErrorMemoryAllocation ? Errc::does_not_fit : Errc::unavailable,
          .what = std::string(call) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")",
          .where = "",
          .help = help_of(status)};
}

Result<Drivers> find_devices() {
  Drivers found;
  // Without a driver the version is 0, and that is no error of the call.
  if (const cudaError_t status = cudaDriverGetVersion(&found.driver); status != cudaSuccess)
    return error_of(status, "cudaDriverGetVersion");
  if (found.driver == 0)
    return Error{.code = Errc::unavailable,
                 .what = "there is no NVIDIA driver: " + needed(),
                 .where = "",
                 .help = std::string("install driver ") + kDriverNeeded +
                         " or newer; in a container, start it with the GPUs (--gpus all)"};
  if (found.driver / 1000 < CUDART_VERSION / 1000)
    return Error{
        .code = Errc::unavailable,
        .what = "the NVIDIA driver is too old: it runs CUDA " + version_text(found.driver) + " at most; " + needed(),
        .where = "",
        .help = std::string("install driver ") + kDriverNeeded + " or newer"};
  const cudaError_t status = cudaGetDeviceCount(&found.devices);
  if (status != cudaSuccess && status != cudaErrorNoDevice) return error_of(status, "cudaGetDeviceCount");
  cudaGetLastError();
  if (found.devices > 0) return found;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return Error{.code = Errc::unavailable,
               .what = std::string("there is a driver, but no GPU that CUDA can use") +
                       (visible == nullptr ? "" : ": CUDA_VISIBLE_DEVICES is '" + std::string(visible) + "'"),
               .where = "",
               .help = visible == nullptr ? "nvidia-smi says which the driver sees" : "unset it"};
}

}  // namespace shard::cuda
