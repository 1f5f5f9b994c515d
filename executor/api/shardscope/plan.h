// A model and a strategy, compiled: what every rank will do, and what that will take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <shardscope/export.h>
#include <shardscope/model.h>
#include <shardscope/result.h>
#include <shardscope/strategy.h>

namespace shardscope {

/// Memory in use: the sum of what is live in a rank's arenas, alignment included. On the CPU the device's arena is
/// memory of the process like the host's, kept apart as a GPU's would be.
struct Live {
  Bytes device{};
  Bytes host{};  ///< pageable and pinned
  Bytes disk{};
  friend bool operator==(const Live&, const Live&) = default;
};

/// Behind creation: the model alone, and with what the optimizer adds to it there, which is the fp32 master parameters
/// of 16-bit ones. Adam's moments are born in the first step.
struct Created {
  Live model{};
  Live optimizer{};
  friend bool operator==(const Created&, const Created&) = default;
};

/// Behind the last operator of the forward pass, behind the last of the backward pass, and at the end of the step; with
/// several micro-steps those of the last of them.
struct InStep {
  Live forward{};
  Live backward{};
  Live step{};
  friend bool operator==(const InStep&, const InStep&) = default;
};

/// Arithmetic of one rank in one step.
struct StepFlops {
  Flops model{};  ///< forward and backward, operator by operator, attention included; no recomputation
  Flops all{};    ///< with what is recomputed, and the optimizer
  /// As tutorials count: 8 x parameters x tokens of the rank; 2 forward, 4 backward, 2 for the recomputed forward,
  /// recomputed or not. Embeddings count as if they were multiplied, attention's own products do not.
  Flops by_parameters{};
};

/// Immutable; copies share it, and moving copies: one that was moved from can still be asked.
class SHARDSCOPE_API Plan {
 public:
  Plan(const Plan&) = default;
  Plan& operator=(const Plan&) = default;
  ~Plan() = default;

  /// Reads, checks and compiles everything that can be refused before memory is taken. Options are those of `shardscope
  /// train`, --config FILE and other tools' files included, but --model, and those that write files or print. Errors:
  /// those of the command; unavailable for --device cuda, which this interface does not run.
  [[nodiscard]] static Result<Plan> compile(const Model& model, const Options& options);
  [[nodiscard]] static Result<Plan> compile(const Model& model, const Strategy& strategy);

  /// Equal for equal plans of all ranks, whoever compiled them.
  [[nodiscard]] const std::string& hash() const;
  /// What was read and not applied, which chunk size was found.
  [[nodiscard]] const std::vector<std::string>& notes() const;
  [[nodiscard]] int ranks() const;
  [[nodiscard]] std::int64_t micro_batch() const;   ///< sequences
  [[nodiscard]] std::int64_t global_batch() const;  ///< sequences per step, of all ranks
  [[nodiscard]] std::int64_t sequence() const;      ///< tokens
  /// Parameters, of all ranks together; tied weights count once.
  [[nodiscard]] std::int64_t parameter_elements() const;

  /// Whether --device-capacity and --host-capacity suffice; does_not_fit names what holds most and what would help.
  [[nodiscard]] Result<void> fits() const;
  // Predicted, of a rank from 0 to ranks() - 1; contradiction of any other.
  /// The arenas' extents: what the rank must have.
  [[nodiscard]] Result<Live> peak(int rank) const;
  [[nodiscard]] Result<Created> created(int rank) const;
  [[nodiscard]] Result<InStep> first_step(int rank) const;
  [[nodiscard]] Result<InStep> steady_step(int rank) const;  ///< every later step
  /// A steady step's, of the slowest rank, on the machine that --cluster names.
  [[nodiscard]] Seconds step_time() const;
  [[nodiscard]] Result<StepFlops> flops(int rank) const;

  struct Impl;  ///< the library's own

 private:
  friend class Training;
  explicit Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// Plan::compile().
[[nodiscard]] inline Result<Plan> compile(const Model& model, const Strategy& strategy) {
  return Plan::compile(model, strategy);
}
[[nodiscard]] inline Result<Plan> compile(const Model& model, const Options& options) {
  return Plan::compile(model, options);
}

}  // namespace shardscope
