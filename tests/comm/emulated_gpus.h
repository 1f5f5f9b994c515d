// Emulated GPUs of one process, one for each rank, with an emulated NCCL between them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "executor/cuda/emulated/emulated.h"
#include "executor/cuda/emulated/nccl.h"
#include "executor/train/device_run.h"

namespace shard::test {

class EmulatedGpus {
 public:
  /// A fault, at a call of the device or of NCCL, is planted on the last of them; at unique_id() on the first, which
  /// makes it.
  explicit EmulatedGpus(int count, cuda::EmulatedOptions options) {
    const std::optional<cuda::PlantedFault> fault = options.fault;
    const auto world = cuda::make_nccl_world();
    for (int gpu = 0; gpu < count; ++gpu) {
      options.seed += 1;
      const bool of_first = fault && fault->call == "nccl_unique_id";
      options.fault = gpu == (of_first ? 0 : count - 1) ? fault : std::nullopt;
      apis_.push_back(std::move(*cuda::make_emulated(options)));
      nccl_.push_back(cuda::make_emulated_nccl(world, options.seed, options.fault));
    }
    for (std::size_t gpu = 0; gpu < apis_.size(); ++gpu)
      own_.push_back({.api = *apis_[gpu], .kernels = cuda::kernels(), .nccl = *nccl_[gpu]});
  }

  [[nodiscard]] const std::vector<train::OwnDevice>& own() const { return own_; }

 private:
  std::vector<std::unique_ptr<cuda::Api>> apis_;
  std::vector<std::unique_ptr<cuda::Nccl>> nccl_;
  std::vector<train::OwnDevice> own_;
};

}  // namespace shard::test
