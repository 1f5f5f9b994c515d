// `shardscope train` on GPUs, or on emulated ones: one that all ranks share, or one for each.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <span>

#include "executor/commands/train_run.h"
#include "executor/flight/recorder.h"
#include "executor/train/device_run.h"

namespace shard::commands {

/// Whether the machine has a GPU for each of the ranks, all of which this process runs; where it has fewer, they share
/// the first. Errc::usage where the emulated device's variable says what it does not know.
[[nodiscard]] Result<bool> has_gpu_for_each(const TrainOptions& options, std::int32_t ranks);

/// Ranks with a GPU each sum over NCCL: reproducibly in the staging of --transport messages, which is taken where
/// nothing else was asked for. Errc::contradiction where something was.
[[nodiscard]] Result<void> choose_transport(const cli::Command& command, TrainOptions& options);

/// Of ranks that this process runs: the same where they have a GPU each.
[[nodiscard]] Result<void> choose_own_transport(const cli::Command& command, TrainOptions& options);

/// Calls `run` for each rank, as threads of this process, each on its own GPU where has_gpu_for_each(). Errors: those
/// of `run`, and unavailable where there is no such device. `recording` may be null.
[[nodiscard]] Result<void> run_on_devices(const Prepared& prepared, const TrainOptions& options,
                                          device_profile::DeviceRecording* recording,
                                          const std::function<Result<void>(train::DeviceRank&)>& run);

/// That with train_on_rank(); the report of rank 0. `recorders`: by rank, each may be null; or none. Errors: as there.
[[nodiscard]] Result<TrainReport> train_on_device(const Prepared& prepared, const TrainOptions& options,
                                                  std::span<flight::Recorder* const> recorders, std::ostream& lines);

/// This process's rank of those that a launcher started, on a GPU of its own: that of its local rank, where the
/// launcher said one to each, else the machine's ranks take them in order. `host` has all ranks; `recorder` may be
/// null. As train_on_rank; unavailable where the machine has fewer GPUs than ranks, or no NCCL.
[[nodiscard]] Result<TrainReport> train_on_own_gpu(const Prepared& prepared, const TrainOptions& options,
                                                   Communicator& host, std::optional<int> local_rank,
                                                   flight::Recorder* recorder, std::ostream& lines);

/// What is said to ranks that a launcher started for emulated devices.
[[nodiscard]] Error ranks_of_a_launcher_on_emulated();

}  // namespace shard::commands
