// One rank's part of `shardscope train`, from a communicator to a report on rank 0.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>

#include "executor/comm/communicator.h"
#include "executor/commands/train_options.h"
#include "executor/commands/train_report.h"
#include "executor/profile/device_recording.h"
#include "executor/train/session.h"
#include "sim/compile/compile.h"
#include "sim/engine/simulate.h"
#include "sim/engine/smallest_change.h"

namespace shard::commands {

/// Everything a run needs that can be known, and refused, before any rank starts.
struct Prepared {
  Planned planned;
  plan::PlanSet plans;
  engine::Simulation prediction;
  std::string data;                          ///< for people
  cpu::InstructionSet instruction_set{};     ///< of this process
  std::shared_ptr<const Weights> weights{};  ///< what parameters begin with; null: they are drawn
};

/// How the run is predicted.
[[nodiscard]] engine::SimulateOptions simulate_options(const TrainOptions& options);

/// Plans, predicts and checks: model, strategy, data, places to write.
[[nodiscard]] Result<Prepared> prepare(const cli::Command& command, const TrainOptions& options);

/// Are the arenas within --device-capacity and --host-capacity, or what the cluster has? does_not_fit (3) names the
/// largest holders and the smallest change that fits.
[[nodiscard]] Result<void> check_fits(const Prepared& prepared, const TrainOptions& options);
/// That change; nothing when it fits, or when none is known.
[[nodiscard]] std::optional<engine::Change> change_that_fits(const Prepared& prepared, const TrainOptions& options);

/// Runs one rank's session on whatever it computes on.
using RunSession = std::function<Result<train::SessionResult>(const plan::Plan& plan, DataSource& data,
                                                              cpu::ThreadPool& pool, const train::SessionOptions&)>;

/// Trains on this rank. `recording`: of what it runs on; null where that is no device, or nobody asked. `lines`
/// receives a line per step on rank 0. On success rank 0 has the report and wrote the traces; on failure no file of
/// this run is left but the log of the steps that were done.
[[nodiscard]] Result<TrainReport> train_on_rank(const Prepared& prepared, const TrainOptions& options,
                                                Communicator& communicator, std::ostream& lines, const RunSession& run,
                                                device_profile::DeviceRecording* recording = nullptr);

}  // namespace shard::commands
