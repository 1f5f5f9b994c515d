// What a training run says at its end: prediction and measurement of every rank, as JSON and as text.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/commands/run_profile.h"
#include "executor/commands/train_weights.h"
#include "executor/cpu/kernels/instruction_set.h"
#include "executor/train/checkpoint_keeper.h"
#include "executor/train/resumed_run.h"
#include "executor/train/session.h"
#include "sim/cli/command_line.h"
#include "sim/commands/assumed.h"
#include "sim/commands/strategy_options.h"
#include "sim/engine/simulation.h"

namespace shard::commands {

/// What one rank measured; travels to rank 0 as text.
struct RankReport {
  std::array<Bytes, kMemoryCount> peak{};  ///< of each memory's arena
  Bytes optimizer_state;
  Bytes resident;         ///< proportional set size less the baseline
  Bytes weights_read{0};  ///< of the files of --weights
  std::int64_t process = 0;
  double processor_seconds = 0;  ///< of that process, while it trained
  CollectiveTotals collectives;
};
[[nodiscard]] std::string pack(const RankReport& report);
/// Asserts on text that pack() did not make.
[[nodiscard]] RankReport unpack(std::string_view text);

/// How a run ended that was asked to, before its last step.
struct Stopped {
  int signal = 0;
  std::int64_t steps = 0;    ///< that are done
  std::string checkpoint{};  ///< behind them; rank 0's
};

struct TrainReport {
  const Planned* planned = nullptr;
  const engine::Simulation* prediction = nullptr;
  train::SessionResult own;  ///< of rank 0
  std::vector<RankReport> ranks;
  bool calibrated = false;     ///< the prediction is of a machine that was measured
  double cores_of_others = 0;  ///< that other programs kept busy meanwhile, on rank 0's machine
  Bytes device_overhead;       ///< the cluster's
  std::string data;
  std::string validation;                      ///< empty: the run was not evaluated
  std::string transport;                       ///< the communicator's name
  cpu::InstructionSet instruction_set{};       ///< of all ranks
  WeightsReport weights{};                     ///< that were read or saved
  const train::ResumedRun* resumed = nullptr;  ///< that the run went on with; null: it was a new one
  std::vector<train::SavedCheckpoint> saved{};
  std::optional<RunProfile> profile{};  ///< where it was asked for
  std::optional<Stopped> stopped{};     ///< then nothing is measured
};

/// Keys: see README, "train --json".
[[nodiscard]] nlohmann::ordered_json to_json(const cli::Command& command, const TrainReport& report);
[[nodiscard]] std::string to_text(const TrainReport& report);

/// What was taken, before the first step and in the answer.
[[nodiscard]] Assumed assumed_of(const Planned& planned, const engine::Simulation& prediction);
/// That, strategy, data, numbers and prediction in a few lines.
[[nodiscard]] std::string heading(const cli::Command& command, const Planned& planned,
                                  const engine::Simulation& prediction, const std::string& data,
                                  cpu::InstructionSet instruction_set);

}  // namespace shard::commands
