// Asks the runtime, NVML and the libraries what they are.
#include "executor/cuda/module/inspect.h"

#include <cuda_runtime_api.h>

#include <array>

#include "executor/cuda/module/check.h"
#include "executor/cuda/module/cublas_lt.h"
#include "executor/cuda/module/device.h"
#include "executor/cuda/module/nvml.h"
#include "executor/cuda/module/real_nccl.h"
#include "traces/base/nvidia_libraries.h"

namespace shard::cuda {
namespace {

std::string dotted(std::int64_t major, std::int64_t minor, std::int64_t patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}
/// Of 10000 x major + 100 x minor + patch.
std::string dotted(std::int64_t version) {
  return dotted(version / 10000, version / 100 % 100, version % 100);
}

LibraryReport inspect_cublas_lt() {
  LibraryReport report{.name = "cuBLASLt"};
  const Result<CublasLt> library = load_cublas_lt();
  if (!library) return report.missing = library.error().what, report;
  report.path = library->path;
  return report.version = dotted(static_cast<std::int64_t>(library->get_version())), report;
}

/// Opened for its version alone so far: attention is our own.
LibraryReport inspect_cudnn() {
  LibraryReport report{.name = "cuDNN"};
  const Result<OpenLibrary> library = open_library("libcudnn.so.9", library_folders());
  if (!library) return report.missing = library.error().what, report;
  std::size_t (*version)() = nullptr;
  if (const auto bound = bind(*library, "cudnnGetVersion", version); !bound)
    return report.missing = bound.error().what, report;
  report.path = library->path;
  return report.version = dotted(static_cast<std::int64_t>(version())), report;
}

LibraryReport inspect_nccl() {
  LibraryReport report{.name = "NCCL"};
  std::string path;
  const Result<std::unique_ptr<Nccl>> library = open_real_nccl(&path);
  if (!library) return report.missing = library.error().what, report;
  report.path = path;
  return report.version = dotted((*library)->version()), report;
}

Result<DeviceReport> inspect_device(int index, int driver, Nvml* nvml, std::string& users_unknown) {
  DeviceReport report;
  Result<DeviceFacts> facts = facts_of(index, driver);
  if (!facts) return facts.error();
  report.facts = std::move(*facts);
  std::array<char, 32> bus{};
  if (const auto done =
          checked(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index), "cudaDeviceGetPCIBusId");
      !done)
    return done.error();
  report.bus = bus.data();
  if (nvml != nullptr) {
    // Without a context of this process, which would be in the figure.
    const Result<MemoryInfo> memory = nvml->memory(report.bus);
    if (memory) report.memory = *memory;
    Result<std::vector<DeviceUser>> users = nvml->users(report.bus);
    if (users)
      report.users = std::move(*users);
    else
      users_unknown = users.error().what;
    if (memory) return report;
  }
  std::size_t free = 0;
  std::size_t total = 0;
  Result<void> done = checked(cudaSetDevice(index), "cudaSetDevice");
  if (done) done = checked(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (!done) return done.error();
  report.memory = {Bytes{static_cast<std::int64_t>(free)}, Bytes{static_cast<std::int64_t>(total)}};
  return report;
}

}  // namespace

std::vector<LibraryReport> inspect_libraries() {
  return {inspect_cublas_lt(), inspect_cudnn(), inspect_nccl()};
}

Result<MachineReport> inspect_machine() {
  const Result<Drivers> found = find_devices();
  if (!found) return found.error();
  MachineReport report{.cuda = found->driver, .runtime = CUDART_VERSION};
  const Result<std::unique_ptr<Nvml>> nvml = open_nvml();
  if (nvml)
    report.driver = (*nvml)->driver_version();
  else
    report.users_unknown = nvml.error().what;
  for (int index = 0; index < found->devices; ++index) {
    Result<DeviceReport> device =
        inspect_device(index, found->driver, nvml ? nvml->get() : nullptr, report.users_unknown);
    if (!device) return device.error();
    report.devices.push_back(std::move(*device));
  }
  report.libraries = inspect_libraries();
  return report;
}

}  // namespace shard::cuda
