// Everything of a training run that can be known, and refused, before any rank starts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "executor/commands/train_options.h"
#include "executor/train/session.h"
#include "sim/compile/compile.h"
#include "sim/engine/simulate.h"
#include "sim/engine/smallest_change.h"

namespace shard::commands {

struct Prepared {
  Planned planned;
  plan::PlanSet plans;
  engine::Simulation prediction;
  std::string data;                                    ///< for people
  std::string validation{};                            ///< for people; empty: the run is not evaluated
  cpu::InstructionSet instruction_set{};               ///< of this process
  std::shared_ptr<const Weights> weights{};            ///< what parameters begin with; null: they are drawn
  std::shared_ptr<const train::ResumedRun> resumed{};  ///< what the run goes on with; null: it is a new one
};

/// How the run is predicted.
[[nodiscard]] engine::SimulateOptions simulate_options(const TrainOptions& options);

/// Plans, predicts and checks: model, strategy, data, places to write.
[[nodiscard]] Result<Prepared> prepare(const cli::Command& command, const TrainOptions& options);

/// Each rank is a process or a thread with threads of its own, and so many take over a minute to start on two cores.
inline constexpr std::int32_t kMostRanks = 256;
/// One machine is not asked for more: a contradiction (78). `started`: "processes".
[[nodiscard]] Result<void> check_ranks(const cli::Command& command, std::int32_t ranks, const std::string& started);

/// Are the arenas within --device-capacity and --host-capacity, or what the cluster has? does_not_fit (3) names the
/// largest holders and the smallest change that fits.
[[nodiscard]] Result<void> check_fits(const Prepared& prepared, const TrainOptions& options);
/// That change; nothing when it fits, or when none is known.
[[nodiscard]] std::optional<engine::Change> change_that_fits(const Prepared& prepared, const TrainOptions& options);

/// Of the plan's class that the rank, which it has, is of.
[[nodiscard]] const engine::ClassResult& class_of(const engine::Simulation& prediction, std::int32_t rank);

/// Arithmetic of one rank in one step.
struct StepFlops {
  Flops model;  ///< forward and backward, operator by operator; no recomputation
  Flops all;    ///< with recomputation and optimizer
  /// As tutorials count: 8 x parameters x tokens; 2 forward, 4 backward, and 2 for a forward that is recomputed,
  /// whether it is or not. An embedding counts as if it were multiplied, attention's own products do not.
  Flops by_parameters;
};
[[nodiscard]] StepFlops step_flops(const Planned& planned, const engine::Simulation& prediction, std::int32_t rank);

/// What options say of a session: numbers, seed, schedule, places. Nobody watches it yet.
[[nodiscard]] train::SessionOptions session_options(const TrainOptions& options);

}  // namespace shard::commands
