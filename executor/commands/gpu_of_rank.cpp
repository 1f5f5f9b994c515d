// Ranks take the GPUs of their machine in order.
#include "executor/commands/gpu_of_rank.h"

#include <string>

namespace shard::commands {

Result<GpuOfRank> gpu_of_rank(std::int32_t rank, const PlaceOnMachine& place, std::optional<int> gpus,
                              std::int32_t nccl_version) {
  if (!gpus) return GpuOfRank{.gpu = place.number};
  const bool shares = nccl_version >= kNcclSharesGpus && *gpus > 0;
  if (shares) return GpuOfRank{.gpu = place.number % *gpus, .is_shared = place.ranks > *gpus};
  if (place.number < *gpus) return GpuOfRank{.gpu = place.number};
  return Error{.code = Errc::unavailable,
               .what = "rank " + std::to_string(rank) + " is number " + std::to_string(place.number + 1) +
                       " of its machine, which has " + std::to_string(*gpus) + (*gpus == 1 ? " GPU" : " GPUs") +
                       ", and NCCL lets ranks share one from 2.30 on",
               .where = "--device",
               .help = "as many ranks on each machine as it has GPUs; without a launcher, --ranks N share one"};
}

}  // namespace shard::commands
