// One rank's training run: the phases of its plan in order, and what it measured.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/cpu/backend.h"
#include "traces/base/result.h"

namespace shard::train {

struct SessionOptions {
  std::int64_t steps = 1;
  bool digest = true;  ///< ends with the digest of parameters and optimizer state
  cpu::OptimizerScalars scalars;
  std::uint64_t seed = 0;
  cpu::Observer* observer = nullptr;  ///< may be null
  /// Called on every rank after each step: step from 0, mean loss, seconds.
  std::function<void(std::int64_t step, float loss, double seconds)> after_step;
  /// Called when a phase begins: for traces.
  std::function<void(Phase phase, std::int64_t step)> before_phase;
};

/// The arena's own books of one phase, all its steps together.
struct PhasePeak {
  Phase phase{};
  Bytes peak;
  Bytes live_peak;
};

struct SessionResult {
  std::vector<float> losses;
  std::vector<double> step_seconds;
  Bytes peak;  ///< the arena's high-water mark over all phases
  Bytes live_peak;
  std::vector<PhasePeak> phases;
  Bytes optimizer_state;
  CollectiveTotals collectives;
  std::string state_sha256;  ///< rank 0; empty elsewhere or without a digest
};

/// Makes the arena in `communicator` and runs. All ranks call it with plans of one PlanSet.
[[nodiscard]] Result<SessionResult> run_session(const plan::Plan& plan, Communicator& communicator, DataSource& data,
                                                cpu::ThreadPool& pool, const SessionOptions& options);

}  // namespace shard::train
