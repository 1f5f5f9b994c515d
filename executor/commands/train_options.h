// The options of `shardscope train`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "executor/commands/checkpoint_options.h"
#include "executor/commands/control_options.h"
#include "executor/commands/evaluation_options.h"
#include "executor/commands/train_weights.h"
#include "executor/cpu/kernels/instruction_set.h"
#include "executor/cpu/kernels/optimizer.h"
#include "executor/data/source.h"
#include "sim/cli/output.h"
#include "sim/commands/foreign_files.h"
#include "sim/commands/strategy_options.h"

namespace shard::commands {

/// Where a profiled run leaves its trace unless it is told.
inline constexpr const char* kProfileTrace = "profile.sst";

/// Steps of a run, counted from 1 as its lines count them, both ends among them.
struct StepRange {
  std::int64_t first = 1;
  std::int64_t last = 1;
  [[nodiscard]] bool contains(std::int64_t step) const { return first <= step && step <= last; }
};

struct TrainOptions {
  StrategyOptions strategy;
  std::string data;
  DataOrder data_order = DataOrder::random;
  std::int64_t steps = 10;
  ControlOptions control{};
  std::optional<double> weight_decay;
  std::uint64_t seed = 0;
  WeightOptions weights;
  CheckpointOptions checkpoints;
  EvaluationOptions evaluation;
  std::string trace;
  std::string trace_predicted;
  bool profile = false;
  std::optional<StepRange> profile_steps;  ///< nothing: all
  std::string log;
  std::string tensorboard;  ///< a folder; empty: no event file
  std::int64_t print_every = 1;
  bool print_memory = false;
  std::string recorder;  ///< where flight recorders are kept after a failure
  std::string cluster = "cpu-local";
  std::optional<cpu::InstructionSet> instruction_set;  ///< nothing: what the matrix library takes
  double timeout_seconds = 60;
  bool keep_going = false;  ///< without numbers
  bool graphs = true;       ///< on GPUs
  ForeignFiles foreign;
  cli::OutputOptions output;
};

/// Declares those of any run: model, strategy, data, steps, machine; `steps_help` says what the steps are for. Output,
/// and files of other tools, which come last, are the command's.
void add_run_options(cli::Command& command, TrainOptions& options, std::string_view steps_help);
/// Declares them all.
void add_train_options(cli::Command& command, TrainOptions& options);

/// Learning rate, decay and the optimizer's own constants, as PyTorch defaults them.
[[nodiscard]] OptimizerScalars scalars_of(const TrainOptions& options);

}  // namespace shard::commands
