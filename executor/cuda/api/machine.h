// What there is of GPUs on a machine: devices, who uses them, and the libraries found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/api/api.h"

namespace shard::cuda {

/// "9.0" of 90.
[[nodiscard]] inline std::string capability_text(std::int32_t compute_capability) {
  return std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
}

/// A program that uses a device.
struct DeviceUser {
  std::int64_t pid = 0;           ///< as the driver counts: of the host, where this is a container
  std::string name{};             ///< empty: not known here
  std::optional<Bytes> memory{};  ///< of the device's; the driver does not always tell
};

struct DeviceReport {
  DeviceFacts facts{};
  std::string bus{};  ///< "0000:3B:00.0"
  MemoryInfo memory{};
  std::optional<std::vector<DeviceUser>> users{};  ///< others than this process; none: not known
};

struct LibraryReport {
  std::string name{};     ///< "cuBLASLt"
  std::string version{};  ///< "13.0.2"; empty: it is not there
  std::string path{};
  std::string missing{};  ///< why it is not there
};

struct MachineReport {
  std::string driver{};         ///< "580.65.06"; empty: not known
  std::int32_t cuda = 0;        ///< the newest that the driver runs, 1000 x major + 10 x minor
  std::int32_t runtime = 0;     ///< that the module was built with
  std::string users_unknown{};  ///< why it is not known who uses the devices; empty: it is
  std::vector<DeviceReport> devices{};
  std::vector<LibraryReport> libraries{};
};

}  // namespace shard::cuda
