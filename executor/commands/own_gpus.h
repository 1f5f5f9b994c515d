// GPUs that each have one rank, with the NCCL through which they speak.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/cuda/api/load.h"
#include "executor/cuda/api/nccl.h"
#include "executor/cuda/emulated/emulated.h"
#include "executor/train/device_run.h"

namespace shard::commands {

struct Gpu {
  cuda::Device device{};
  std::unique_ptr<cuda::Nccl> nccl{};
};

/// Errc::unavailable without the module or the library.
[[nodiscard]] Result<std::unique_ptr<cuda::Nccl>> open_nccl();

/// The first `count` of this machine, by CUDA's numbers. Errors: open_nccl()'s and cuda::open_device()'s.
[[nodiscard]] Result<std::vector<Gpu>> open_gpus(int count);

/// Emulated ones in place of these, each with a seed of its own and capacity(number) bytes; a planted fault is the
/// last's.
[[nodiscard]] Result<std::vector<Gpu>> emulate_gpus(int count, cuda::EmulatedOptions options,
                                                    const std::function<Bytes(int number)>& capacity);

/// As ranks take them. They refer to `gpus`.
[[nodiscard]] std::vector<train::OwnDevice> own_devices(const std::vector<Gpu>& gpus);

}  // namespace shard::commands
