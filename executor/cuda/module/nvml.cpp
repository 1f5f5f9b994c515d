// Calls of NVML, declared here: toolkits come without its header. Names and layouts are those of its reference, "NVML
// API Reference Guide", in the versions that its function names say.
#include "executor/cuda/module/nvml.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <limits>
#include <memory>

#include "traces/base/nvidia_libraries.h"

namespace shard::cuda {
namespace {

using NvmlDevice = struct NvmlDeviceTag*;
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;

/// nvmlMemory_t.
struct NvmlMemory {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};
/// nvmlProcessInfo_t, of nvmlDeviceGetComputeRunningProcesses_v3.
struct NvmlProcess {
  unsigned int pid = 0;
  unsigned long long used_memory = 0;
  unsigned int gpu_instance = 0;
  unsigned int compute_instance = 0;
};
constexpr auto kMemoryUnknown = std::numeric_limits<unsigned long long>::max();

/// What runs as this process here; empty where it is of another container.
std::string program_of(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

class RealNvml final : public Nvml {
 public:
  explicit RealNvml(const OpenLibrary& library) {
    const auto load = [&](const char* symbol, auto& target) {
      if (bound_) bound_ = bind(library, symbol, target);
    };
    load("nvmlInit_v2", init_);
    load("nvmlShutdown", shutdown_);
    load("nvmlErrorString", error_string_);
    load("nvmlSystemGetDriverVersion", driver_version_);
    load("nvmlDeviceGetHandleByPciBusId_v2", device_by_bus_);
    load("nvmlDeviceGetMemoryInfo", memory_info_);
    load("nvmlDeviceGetComputeRunningProcesses_v3", processes_);
  }
  ~RealNvml() override {
    if (started_) shutdown_();
  }

  Result<void> start() {
    if (!bound_) return bound_.error();
    const Result<void> done = checked(init_(), "nvmlInit_v2");
    started_ = done.has_value();
    return done;
  }

  std::string driver_version() override {
    std::array<char, 96> text{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE is 80
    return driver_version_(text.data(), static_cast<unsigned int>(text.size() - 1)) == kSuccess ? text.data() : "";
  }

  Result<MemoryInfo> memory(const std::string& bus) override {
    const Result<NvmlDevice> device = at(bus);
    if (!device) return device.error();
    NvmlMemory memory;
    if (const auto done = checked(memory_info_(*device, &memory), "nvmlDeviceGetMemoryInfo"); !done)
      return done.error();
    return MemoryInfo{Bytes{static_cast<std::int64_t>(memory.free)}, Bytes{static_cast<std::int64_t>(memory.total)}};
  }

  Result<std::vector<DeviceUser>> users(const std::string& bus) override {
    const Result<NvmlDevice> device = at(bus);
    if (!device) return device.error();
    std::vector<NvmlProcess> list(64);
    int status = kInsufficientSize;
    // It says how many there are; more may have come until it is asked again.
    for (int attempt = 0; attempt < 4 && status == kInsufficientSize; ++attempt) {
      auto count = static_cast<unsigned int>(list.size());
      status = processes_(*device, &count, list.data());
      list.resize(status == kInsufficientSize ? count + std::size_t{16} : count);
    }
    if (const auto done = checked(status, "nvmlDeviceGetComputeRunningProcesses_v3"); !done) return done.error();
    std::vector<DeviceUser> users;
    for (const NvmlProcess& each : list) {
      if (each.pid == static_cast<unsigned int>(getpid())) continue;
      DeviceUser user{.pid = each.pid, .name = program_of(each.pid)};
      if (each.used_memory != kMemoryUnknown) user.memory = Bytes{static_cast<std::int64_t>(each.used_memory)};
      users.push_back(std::move(user));
    }
    return users;
  }

 private:
  Result<void> checked(int status, const char* call) const {
    if (status == kSuccess) return {};
    return Error{
        .code = Errc::unavailable, .what = std::string(call) + ": " + error_string_(status), .where = "", .help = ""};
  }
  Result<NvmlDevice> at(const std::string& bus) const {
    NvmlDevice device = nullptr;
    if (const auto done = checked(device_by_bus_(bus.c_str(), &device), "nvmlDeviceGetHandleByPciBusId_v2"); !done)
      return done.error();
    return device;
  }

  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  const char* (*error_string_)(int) = nullptr;
  int (*driver_version_)(char*, unsigned int) = nullptr;
  int (*device_by_bus_)(const char*, NvmlDevice*) = nullptr;
  int (*memory_info_)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*processes_)(NvmlDevice, unsigned int*, NvmlProcess*) = nullptr;
  Result<void> bound_{};
  bool started_ = false;
};

}  // namespace

Result<std::unique_ptr<Nvml>> open_nvml() {
  const Result<OpenLibrary> library = open_library("libnvidia-ml.so.1", {});
  if (!library) return library.error();
  auto nvml = std::make_unique<RealNvml>(*library);
  if (const Result<void> started = nvml->start(); !started) return started.error();
  return std::unique_ptr<Nvml>(std::move(nvml));
}

}  // namespace shard::cuda
