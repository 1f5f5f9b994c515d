// One rank's training run: the phases of its plan in order, and what it measured.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/cpu/backend.h"
#include "traces/base/result.h"

namespace shard::train {

/// What a step came to, the same on every rank.
struct StepResult {
  std::int64_t step = 0;  ///< from 0
  float loss = 0;
  double seconds = 0;
  double learning_rate = 0;
  std::optional<plan::ControlBlock> control{};  ///< gradient norm, loss scale, overflow, where they are looked at
};

/// Of one evaluation, the same on every rank.
struct EvaluationResult {
  std::int64_t step = 0;  ///< as many are done
  double loss = 0;        ///< the mean
  double seconds = 0;
};

/// When a session is evaluated, and on what. Its plan has the phase.
struct EvaluationPlan {
  std::int64_t every = 0;  ///< steps, and behind the last; 0: never
  std::int64_t steps = 1;  ///< of as many micro-batches as a training step, from 0 on
  /// From here on the session's data is that for evaluations, or no longer.
  std::function<void(bool evaluates)> use_validation = nullptr;
  std::function<void(const EvaluationResult&)> after = nullptr;  ///< may be null
};

/// Who keeps the state of a run as it stands behind a step. Each rank's own; all are asked the same.
class StateKeeper {
 public:
  StateKeeper() = default;
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;
  virtual ~StateKeeper() = default;
  /// Whether the state behind that many steps is wanted, of `last` that the run has; the same on all ranks.
  [[nodiscard]] virtual Result<bool> wants(std::int64_t steps, std::int64_t last) = 0;
  /// Then, in this order, on all ranks: begin(), what the save phase hands out, end(). An error is that of all ranks.
  [[nodiscard]] virtual Result<void> begin(std::int64_t steps) = 0;
  virtual void take(model::ParamId param, plan::StateContent content, std::int64_t first,
                    std::span<const std::byte> elements) = 0;
  [[nodiscard]] virtual Result<void> end() = 0;
  /// Behind the run's last step: what is still being kept is, or an error says why not, on all ranks.
  [[nodiscard]] virtual Result<void> settle() { return {}; }
  /// Whether the run ends behind the steps that wants() was asked about last, though it has more; the same on all
  /// ranks.
  [[nodiscard]] virtual bool ends_run() const { return false; }
};

struct SessionOptions {
  std::int64_t steps = 1;  ///< of the whole run, those behind which it goes on among them
  bool digest = true;      ///< ends with the digest of parameters and optimizer state
  OptimizerScalars scalars;
  plan::ControlKnobs knobs{};
  std::vector<executor::InjectedOverflow> inject{};
  std::function<double(std::int64_t step)> learning_rate = nullptr;  ///< null: that of scalars in every step
  std::uint64_t seed = 0;
  executor::Observer* observer = nullptr;  ///< may be null
  flight::Recorder* recorder = nullptr;    ///< may be null
  /// Called on every rank after each step.
  std::function<void(const StepResult& step)> after_step;
  /// Called when a phase begins: for traces.
  std::function<void(Phase phase, std::int64_t step)> before_phase;
  /// Called when it has ended well.
  std::function<void()> after_phase = nullptr;
  /// Called once, behind the last phase, with all arenas still there. Its error is the session's.
  std::function<Result<void>()> before_end = nullptr;
  executor::StateReader read_state = nullptr;  ///< with a digest
  /// The digest phase runs behind every step, not behind the last alone, and read_state sees it on every rank.
  bool read_each_step = false;
  executor::FirstValues first_values = nullptr;  ///< null: drawn, under the seed
  executor::FirstState first_state = nullptr;    ///< null: zeros
  std::int64_t first_step = 0;                   ///< of a run that goes on: as many steps are done
  StateKeeper* keeper = nullptr;                 ///< may be null; keeps the state of the run
  EvaluationPlan evaluation{};
  std::string disk_path{};                       ///< an existing directory for what the plan puts on disk
  /// Trains on where losses, gradients or parameters are no numbers, which else ends the session.
  bool keep_going = false;
};

/// An arena's own books of one phase, all its steps together.
struct PhasePeak {
  Phase phase{};
  Memory memory = Memory::device;
  Bytes peak;
  Bytes live_peak;
};

/// Live device memory behind a part of the run: the names of engine::Moment.
struct MeasuredMoment {
  std::string name;
  CategoryBytes by_category{};
};

/// Of a GPU behind the last step.
struct DeviceInUse {
  Bytes bytes{0};  ///< of its memory, by all who use it, as its driver counts
  int ranks = 1;   ///< of this run on it
};

struct SessionResult {
  std::vector<float> losses;
  std::vector<double> step_seconds;
  std::vector<executor::CommunicationTime> step_communication;  ///< by step, of this rank
  std::vector<double> learning_rates;
  std::vector<plan::ControlBlock> controls;  ///< by step; empty where the strategy is not controlled
  std::array<Bytes, kMemoryCount> peak{};    ///< the arenas' high-water marks over all phases
  std::array<Bytes, kMemoryCount> live_peak{};
  std::vector<PhasePeak> phases;
  std::vector<MeasuredMoment> moments;  ///< creation; forward, backward and step of the last step
  std::optional<DeviceInUse> device;    ///< none on CPUs
  Bytes optimizer_state;
  CollectiveTotals collectives;         ///< of creation and steps, which is what a simulation of the training counts
  CollectiveTotals digest_collectives;  ///< of the digest after it
  CollectiveTotals evaluation_collectives;
  std::vector<EvaluationResult> evaluations;
  std::string state_sha256;             ///< rank 0; empty elsewhere or without a digest
};

[[nodiscard]] executor::BackendOptions backend_options(const SessionOptions& options);

/// A rank's run for those who bring the loop; run_session() is everybody else's. All ranks make the same calls,
/// create() first, with plans of one PlanSet. Everything it refers to outlives it. One thread.
class Session {
 public:
  Session(executor::RankBackend& backend, const plan::Plan& plan, Communicator& communicator,
          const SessionOptions& options)
      : plan_(plan),
        options_(options),
        backend_(backend),
        communicator_(communicator),
        steps_(options.first_step),
        noted_(options.first_step) {}

  [[nodiscard]] Result<void> create();
  /// The next step: as many as one likes, whatever options.steps says. contradiction, on all ranks, where it left no
  /// numbers (executor/train/numbers.h).
  [[nodiscard]] Result<StepResult> step();
  /// Evaluates where that is due behind the steps that are done.
  [[nodiscard]] Result<void> evaluate();
  /// Saves where the keeper wants the state behind the steps that are done.
  [[nodiscard]] Result<void> keep();
  /// Steps that are done, those of the run that this one goes on with among them.
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Of parameters and optimizer state behind the last step, on rank 0; empty elsewhere. contradiction, on all ranks,
  /// where parameters are not finite.
  [[nodiscard]] Result<std::string> digest();
  /// An arena's high-water mark so far.
  [[nodiscard]] Bytes peak(Memory memory) const { return backend_.books().peak(memory); }
  /// What was measured. Afterwards nothing more is called.
  [[nodiscard]] SessionResult finish();

 private:
  /// `data`: the step whose micro-batches are loaded, where it is not that.
  [[nodiscard]] Result<void> phase(Phase which, std::int64_t step, std::optional<std::int64_t> data = std::nullopt);
  /// The digest phase, behind as many steps as are done.
  [[nodiscard]] Result<void> show_state();
  void note_parts_of_step();
  void note_peaks(Phase which, Memory memory);

  const plan::Plan& plan_;
  const SessionOptions& options_;
  executor::RankBackend& backend_;
  Communicator& communicator_;
  std::int64_t steps_ = 0;
  std::int64_t noted_ = 0;  ///< the step whose parts are among the moments
  SessionResult result_;
};

/// Runs on a backend that has its arenas. All ranks call it with plans of one PlanSet. A run that its keeper ends has
/// no digest.
[[nodiscard]] Result<SessionResult> run_session(executor::RankBackend& backend, const plan::Plan& plan,
                                                Communicator& communicator, const SessionOptions& options);

/// The same on CPUs. Makes the arenas, the device's in `communicator`, and runs.
[[nodiscard]] Result<SessionResult> run_session(const plan::Plan& plan, Communicator& communicator, DataSource& data,
                                                cpu::ThreadPool& pool, const SessionOptions& options);

}  // namespace shard::train
