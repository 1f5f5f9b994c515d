// `shardscope train` on one GPU that all ranks share, or on an emulated one.
#pragma once

#include <iosfwd>

#include "executor/commands/train_run.h"

namespace shard::commands {

/// All ranks, as threads of this process; the report of rank 0. Errors: those of train_on_rank, and unavailable where
/// there is no such device.
[[nodiscard]] Result<TrainReport> train_on_device(const Prepared& prepared, const TrainOptions& options,
                                                  std::ostream& lines);

/// What is said to ranks that a launcher started.
[[nodiscard]] Error ranks_of_a_launcher_on_gpus();

}  // namespace shard::commands
