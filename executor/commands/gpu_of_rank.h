// Which of its machine's GPUs a rank takes that a launcher started.
#pragma once

#include <cstdint>
#include <optional>

#include "traces/base/result.h"

namespace shard::commands {

/// From this version on NCCL can speak between ranks that share a GPU, where NCCL_MULTI_RANK_GPU_ENABLE=1
/// (NCCL's documentation of its environment variables: since 2.30, experimental).
inline constexpr std::int32_t kNcclSharesGpus = 23000;

/// A rank among those of its machine.
struct PlaceOnMachine {
  int number = 0;  ///< counted from 0
  int ranks = 1;   ///< on the machine
};

struct GpuOfRank {
  int gpu = 0;
  bool is_shared = false;  ///< some ranks of the machine share a GPU, so all must let NCCL do that
};

/// Ranks take the GPUs of their machine in order; where they are more, they begin again if NCCL can do that.
///   rank          in the world, for the message
///   gpus          of the machine; nothing where that is not known
///   nccl_version  10000 x major + 100 x minor + patch
/// Errc::unavailable where this rank has no GPU.
[[nodiscard]] Result<GpuOfRank> gpu_of_rank(std::int32_t rank, const PlaceOnMachine& place, std::optional<int> gpus,
                                            std::int32_t nccl_version);

}  // namespace shard::commands
