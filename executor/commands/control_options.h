// Options of `shardscope train` that steer steps without changing the plan: learning rate, Adam's numbers, overflow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/cpu/backend.h"
#include "executor/rates/learning_rate.h"
#include "sim/cli/command_line.h"
#include "sim/commands/strategy_options.h"
#include "sim/strategy/strategy.h"

namespace shard::commands {

struct ControlOptions {
  std::vector<std::string> inject_overflow{};
  double learning_rate = 1e-3;
  rates::ScheduleKind schedule = rates::ScheduleKind::constant;
  std::string torch_scheduler{};  ///< empty: what `schedule` says
  std::int64_t warmup_steps = 0;
  double min_learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

/// Declares --lr, --lr-schedule, --torch-scheduler, --warmup-steps, --min-lr, --beta1, --beta2, --epsilon,
/// --inject-overflow.
void add_control_options(cli::Command& command, ControlOptions& options);

/// Contradictions (78): an overflow without a scaler, steps and ranks that there are not, rates that cross. Errors of
/// TorchSchedule::read().
[[nodiscard]] Result<void> check_control(const cli::Command& command, const ControlOptions& options,
                                         const plan::Strategy& strategy, std::int64_t steps);

// Of options that check_control() and resolve() have passed.
[[nodiscard]] plan::ControlKnobs knobs_of(const StrategyOptions& options);
[[nodiscard]] std::vector<executor::InjectedOverflow> injections_of(const ControlOptions& options);
[[nodiscard]] rates::Schedule schedule_of(const ControlOptions& options, std::int64_t steps);

}  // namespace shard::commands
