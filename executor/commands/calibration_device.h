// What a calibration measures of a GPU beside trainings: products, memory, copies, launches, collectives, libraries.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "executor/cuda/measure/collectives.h"
#include "executor/cuda/measure/copies.h"
#include "executor/cuda/measure/kernels.h"
#include "executor/cuda/measure/launches.h"
#include "sim/cluster/cluster.h"

namespace shard::commands {

struct DeviceFigures {
  cuda::DeviceFacts facts{};
  std::int32_t devices = 1;  ///< of this machine
  Bytes memory{};            ///< what a process can allocate: all but context and libraries
  Bytes host_memory{};
  double host_bandwidth = 0;  ///< bytes a second, all cores
  double memory_bandwidth = 0;
  cuda::ProductRates products{};
  cuda::CopyRates copies{};
  cuda::LaunchTimes launches{};
  cuda::CollectiveRates collectives{};     ///< of ranks that share the first
  std::optional<cluster::Link> between{};  ///< this machine's GPUs, over NCCL; none where it has one, or no NCCL
  cuda::Measurements all{};                ///< every figure, with its method
};

/// Of the first GPU, and between all of this machine, or of emulated ones, whose figures mean nothing. `say` hears what
/// is measured next. Takes some fifteen seconds on a GPU. Errors: unavailable where there is none, naming the driver
/// that is needed; of the device.
[[nodiscard]] Result<DeviceFigures> measure_device(bool emulated, int cores,
                                                   const std::function<void(const std::string& what)>& say);

}  // namespace shard::commands
