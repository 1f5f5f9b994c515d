// What the backends of a plan have in common: how one is observed, what it is told, and what a training run asks of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "executor/flight/recorder.h"
#include "executor/kernels/optimizer_math.h"
#include "executor/rank/books.h"
#include "executor/rank/health.h"
#include "executor/rank/observer.h"
#include "executor/state/digest.h"
#include "sim/ir/control_block.h"
#include "sim/ir/plan.h"

namespace shard::executor {

/// What the collectives of a phase took on this rank, one after another.
struct CommunicationTime {
  std::int64_t transfer_ns = 0;
  std::int64_t waiting_ns = 0;
};

/// A test of the loss scaler: the loss scale is infinite on one rank in one step, counted from 0.
struct InjectedOverflow {
  std::int32_t rank = -1;
  std::int64_t step = -1;
  friend bool operator==(const InjectedOverflow&, const InjectedOverflow&) = default;
};

/// Reads what the digest phase shows on the first data-parallel rank, or on every rank: a parameter, its master or a
/// moment of it, whole, as stored. What the rank lacks has just come from those that have it.
using StateReader =
    std::function<void(model::ParamId param, plan::Digest::Content content, std::span<const std::byte> elements)>;

/// The values that a parameter begins with: its elements from number `first` of the whole parameter on.
using FirstValues = std::function<Result<void>(model::ParamId param, std::int64_t first, std::span<float> values)>;

/// Takes what the save phase hands out on this rank: elements of a parameter, its master or a moment of it, as stored,
/// from number `first` of the whole parameter on; a parameter's step count; the state of the loss scaler, with no
/// parameter. Of elements that several ranks hold one of them hands out each; counts and the scaler's state all do.
using StateSaver = std::function<void(model::ParamId param, plan::StateContent content, std::int64_t first,
                                      std::span<const std::byte> elements)>;

/// What optimizer state is born as, in the same terms, but for counts, which are those of all parameters, from byte
/// `first` on. Moments are fp32.
using FirstState = std::function<Result<void>(model::ParamId param, plan::StateContent content, std::int64_t first,
                                              std::span<std::byte> elements)>;

struct BackendOptions {
  OptimizerScalars scalars;
  plan::ControlKnobs knobs{};
  std::vector<InjectedOverflow> inject{};
  std::uint64_t seed = 0;
  Observer* observer = nullptr;  ///< may be null; not owned
  StateReader read_state{};      ///< may be empty
  bool read_on_every_rank = false;
  FirstValues first_values{};            ///< empty: drawn, under the seed
  FirstState first_state{};              ///< empty: zeros
  StateSaver save_state{};               ///< empty: the save phase does nothing
  flight::Recorder* recorder = nullptr;  ///< may be null; not owned
};

/// Interprets one rank's plan, a phase at a time. Everything it refers to outlives it. One thread.
class RankBackend {
 public:
  RankBackend() = default;
  RankBackend(const RankBackend&) = delete;
  RankBackend& operator=(const RankBackend&) = delete;
  virtual ~RankBackend() = default;

  /// Returns when every op of the phase has finished.
  [[nodiscard]] virtual Result<void> run(const plan::PhaseOps& phase) = 0;

  /// The step that the next phase belongs to, counted from 0; decides the data of its micro-batches.
  virtual void set_step(std::int64_t step) = 0;
  virtual void set_learning_rate(double rate) = 0;

  // Between phases.
  /// Mean loss of the last finished step.
  [[nodiscard]] virtual float loss() const = 0;
  /// What the last finished step decided; nothing where the strategy is not controlled.
  [[nodiscard]] virtual std::optional<plan::ControlBlock> control() const = 0;
  /// What was not a number: of this rank, so far.
  [[nodiscard]] virtual const Health& health() const = 0;
  [[nodiscard]] virtual const Books& books() const = 0;
  /// Since the start of the phase.
  [[nodiscard]] virtual const CommunicationTime& communication_time() const = 0;
  /// Filled by the digest phase, on the first data-parallel rank: that of its part of the model.
  [[nodiscard]] virtual const StateDigest& digest() const = 0;
};

/// Bytes of optimizer state in use on this rank: what its steps touch, and a 4-byte count per parameter with state.
[[nodiscard]] Bytes optimizer_state_bytes(const plan::Plan& plan, const plan::Position& position);

}  // namespace shard::executor
