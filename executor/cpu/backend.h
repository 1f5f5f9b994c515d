// The CPU interpreter of a plan: kernels on the calling thread and its pool, collectives started and polled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/cpu/host_ops.h"
#include "executor/cpu/kernels/threads.h"
#include "executor/cpu/memories.h"
#include "executor/data/source.h"
#include "executor/kernels/elements.h"
#include "executor/rank/backend.h"
#include "sim/ir/run.h"

namespace shard::cpu {

/// Interprets one rank's plan over the arenas of its memories. Everything it refers to outlives it. One thread.
///
/// Ops of the compute stream run where they are issued. A collective is started when issued and advances in poll(); an
/// op waits only for the collectives among its dependencies, yielding its core, with the communicator's deadline.
/// acquire and release keep the arena's books; nothing is allocated while training.
class Backend final : public executor::RankBackend {
 public:
  Backend(const plan::Plan& plan, Communicator& communicator, const Memories& memories, DataSource& data,
          ThreadPool& pool, const executor::BackendOptions& options);

  [[nodiscard]] Result<void> run(const plan::PhaseOps& phase) override { return plan::run(phase, *this); }
  [[nodiscard]] Result<void> begin_phase(const plan::PhaseOps& phase);
  [[nodiscard]] Result<void> acquire(const plan::Op& op, std::span<const BufferId> buffers);
  [[nodiscard]] Result<void> issue(const plan::Op& op);
  [[nodiscard]] Result<void> release(const plan::Op& op, std::span<const BufferId> buffers);
  [[nodiscard]] Result<void> poll();
  [[nodiscard]] Result<void> end_phase(const plan::PhaseOps& phase);

  void set_step(std::int64_t step) override {
    step_ = step;
    host_ops_.set_step(step);
  }
  void set_learning_rate(double rate) override { host_ops_.set_learning_rate(rate); }
  [[nodiscard]] float loss() const override;
  [[nodiscard]] std::optional<plan::ControlBlock> control() const override;
  [[nodiscard]] const executor::Health& health() const override { return host_ops_.health(); }
  [[nodiscard]] const executor::Books& books() const override { return books_; }
  [[nodiscard]] const executor::CommunicationTime& communication_time() const override { return communication_time_; }
  [[nodiscard]] const StateDigest& digest() const override { return host_ops_.digest(); }

 private:
  struct Flight {
    const plan::Op* op = nullptr;
    Ticket ticket;
    std::int64_t begin_ns = 0;
  };

  [[nodiscard]] std::byte* at(const plan::Operand& operand) const;
  /// The operand's floating-point elements, of its buffer's type.
  [[nodiscard]] Elements elements(const plan::Operand& operand) const {
    return {at(operand), plan_.buffer(operand.buffer).dtype};
  }
  [[nodiscard]] Result<void> start(const plan::Op& op, const plan::Communicate& call);
  /// Waits for a collective in flight, and for those started before it.
  [[nodiscard]] Result<void> wait_for(OpId op);
  /// Tells what the thread did since the last op, which began at `now`.
  void tell_between(std::int64_t now);
  void land();  ///< the oldest flight
  void compute(const plan::Op& op, const plan::Compute& c);
  /// In builds with guards: fills the gap behind a buffer that begins to live.
  [[nodiscard]] Result<void> set_guard(const plan::Buffer& buffer);
  /// Errc::internal where the gap behind a buffer that ceases to live is no longer as it was filled.
  [[nodiscard]] Result<void> check_guard(const plan::Op& op, const plan::Buffer& buffer) const;
  [[nodiscard]] Memory memory_of(const plan::Operand& operand) const { return plan_.buffer(operand.buffer).memory; }

  const plan::Plan& plan_;
  plan::Position position_;
  Communicator& communicator_;
  const Memories& memories_;
  ThreadPool& pool_;
  executor::Observer* observer_;
  flight::Recorder* recorder_;
  std::uint64_t seed_;
  executor::Books books_;
  HostOps host_ops_;
  std::deque<Flight> flights_;
  executor::CommunicationTime communication_time_;
  std::vector<CommSegment> segments_;  ///< scratch of start(), kept so that nothing is allocated while training
  std::vector<std::byte*> operands_;   ///< scratch of issue()
  std::int64_t step_ = 0;
  std::int64_t between_since_ns_ = 0;  ///< the end of the last op that ran here
};

}  // namespace shard::cpu
