// What ops do to host memory: all that a backend runs on the host, wherever its operators run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/comm/progress.h"
#include "executor/cpu/kernels/threads.h"
#include "executor/cpu/state_ops.h"
#include "executor/data/source.h"
#include "executor/kernels/elements.h"
#include "executor/rank/backend.h"
#include "executor/state/digest.h"
#include "sim/ir/plan.h"

namespace shard::cpu {

/// One rank's. All ops of sim/ir/SPEC.md but computation, collectives and what touches the disk. Kernels run on the
/// calling thread and the pool. What it refers to outlives it.
class HostOps {
 public:
  HostOps(const plan::Plan& plan, Rank rank, DataSource& data, ThreadPool& pool,
          const executor::BackendOptions& options);
  HostOps(const HostOps&) = delete;
  HostOps& operator=(const HostOps&) = delete;

  /// Operand i of the op lies at `at[i]`, in memory of the host. Errors: those of the data source and of first
  /// values.
  [[nodiscard]] Result<void> run(const plan::Op& op, std::span<std::byte* const> at);

  /// What an op gets done is noted there while it runs. It outlives this.
  void note_in(Progress& progress) { progress_ = &progress; }
  void set_step(std::int64_t step) { step_ = step; }
  void set_learning_rate(double rate) { options_.scalars.learning_rate = rate; }
  /// What births and saving are, of any stretch of their bytes.
  [[nodiscard]] const StateOps& state() const { return state_; }
  [[nodiscard]] const StateDigest& digest() const { return digest_; }
  [[nodiscard]] const executor::Health& health() const { return health_; }

 private:
  /// An op and where its operands are.
  struct On {
    const plan::Op& op;
    std::span<std::byte* const> at;
  };

  [[nodiscard]] Dtype dtype(const On& on, std::size_t i) const { return plan_.buffer(on.op.operands[i].buffer).dtype; }
  /// The operand's floating-point elements, of its buffer's type.
  [[nodiscard]] Elements elements(const On& on, std::size_t i) const { return {on.at[i], dtype(on, i)}; }
  [[nodiscard]] std::int64_t count(const On& on, std::size_t i) const {
    return on.op.operands[i].bytes / bytes_per_element(dtype(on, i));
  }
  [[nodiscard]] static float* floats(const On& on, std::size_t i) { return reinterpret_cast<float*>(on.at[i]); }
  /// What the operand holds, all of it.
  template <class T>
  [[nodiscard]] static std::span<T> as(const On& on, std::size_t i) {
    return {reinterpret_cast<T*>(on.at[i]), static_cast<std::size_t>(on.op.operands[i].bytes) / sizeof(T)};
  }
  /// n bytes of it from byte `begin` on.
  [[nodiscard]] static std::span<std::byte> bytes_of(const On& on, std::size_t i, std::int64_t begin, std::int64_t n) {
    return {on.at[i] + begin, static_cast<std::size_t>(n)};
  }
  void moved() const {
    if (progress_ != nullptr) progress_->note();
  }
  /// run(begin, count) of pieces of n elements that take well below a second, each noted.
  template <class Run>
  void in_pieces(std::int64_t n, const Run& run) const;
  [[nodiscard]] Result<void> load_batch(const On& on, const plan::LoadBatch& batch);
  [[nodiscard]] Result<void> initialize(const On& on, const plan::Initialize& a);
  [[nodiscard]] Result<void> born(const On& on, const plan::ZeroState& a);
  /// Writes n first values of a parameter, from number `first` of the whole one on.
  [[nodiscard]] Result<void> first_values(model::ParamId param, std::int64_t first, std::int64_t n, float* out);
  void zero_all(const On& on, std::size_t i) const;
  void optimizer_step(const On& on, const plan::OptimizerStep& a);
  /// Keeps the first.
  void note_not_finite(std::int64_t step, model::ParamId param);
  /// Parameters and masters, whole, behind the last step.
  void note_shown(model::ParamId param, plan::Digest::Content content, Dtype dtype,
                  std::span<const std::byte> elements);
  void mean_loss(const On& on);
  void load_scalars(const On& on);
  void begin_control(const On& on);
  void inspect(const On& on, const plan::InspectGradient& a);
  void decide(const On& on, const plan::Decide& a);
  void digest_flat(const On& on, const plan::Digest& a);

  const plan::Plan& plan_;
  plan::Position position_;
  Rank rank_;
  DataSource& data_;
  ThreadPool& pool_;
  executor::BackendOptions options_;
  StateOps state_;
  Progress* progress_ = nullptr;
  StateDigest digest_;
  executor::Health health_;
  std::int64_t step_ = 0;
};

}  // namespace shard::cpu
