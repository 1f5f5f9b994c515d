// What NVIDIA's management library (libnvidia-ml, a part of the driver) knows of devices and of who uses them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/cuda/api/machine.h"

namespace shard::cuda {

/// Opened at run time; shut down with the object.
class Nvml {
 public:
  Nvml() = default;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  virtual ~Nvml() = default;

  /// "580.65.06"; empty where it does not say.
  [[nodiscard]] virtual std::string driver_version() = 0;
  /// Of the device at this bus ("0000:3B:00.0").
  [[nodiscard]] virtual Result<MemoryInfo> memory(const std::string& bus) = 0;
  /// Who computes on it, without this process.
  [[nodiscard]] virtual Result<std::vector<DeviceUser>> users(const std::string& bus) = 0;
};

/// Errc::unavailable where it is not there.
[[nodiscard]] Result<std::unique_ptr<Nvml>> open_nvml();

}  // namespace shard::cuda
