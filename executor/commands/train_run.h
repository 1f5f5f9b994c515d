// One rank's part of `shardscope train`, from a communicator to a report on rank 0.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>

#include "executor/comm/communicator.h"
#include "executor/commands/prepared.h"
#include "executor/commands/train_report.h"
#include "executor/profile/device_recording.h"
#include "executor/train/session.h"

namespace shard::commands {

/// Runs one rank's session on whatever it computes on.
using RunSession = std::function<Result<train::SessionResult>(const plan::Plan& plan, DataSource& data,
                                                              cpu::ThreadPool& pool, const train::SessionOptions&)>;

/// Trains on this rank. `recording`: of what it runs on; null where that is no device, or nobody asked. `lines`
/// receives a line per step on rank 0. On success rank 0 has the report and wrote the traces; on failure no file of
/// this run is left but the log of the steps that were done; nor of one that is stopped, but what it saved.
[[nodiscard]] Result<TrainReport> train_on_rank(const Prepared& prepared, const TrainOptions& options,
                                                Communicator& communicator, std::ostream& lines, const RunSession& run,
                                                device_profile::DeviceRecording* recording = nullptr);

}  // namespace shard::commands
