// The CPU interpreter of a plan: kernels on the calling thread and its pool, collectives started and polled.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/cpu/control.h"
#include "executor/cpu/kernels/optimizer.h"
#include "executor/cpu/kernels/threads.h"
#include "executor/cpu/memories.h"
#include "executor/data/source.h"
#include "executor/kernels/elements.h"
#include "executor/state/digest.h"
#include "sim/ir/run.h"
#include "sim/memory/arena.h"

namespace shard::cpu {

/// One finished op of the measured run. Times are of std::chrono::steady_clock.
struct OpRecord {
  const plan::Op* op = nullptr;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t waiting_ns = 0;  ///< of a collective: while no data moved (Communicator::moving_time)
};

/// What the collectives of a phase took on this rank, one after another.
struct CommunicationTime {
  std::int64_t transfer_ns = 0;
  std::int64_t waiting_ns = 0;
};

/// A buffer taken or given back, in plan order.
struct MemoryRecord {
  const plan::Op* op = nullptr;
  BufferId buffer;
  bool acquire = true;
  std::int64_t time_ns = 0;
};

/// Receives what happens; called on the training thread, must be quick.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void finished(const OpRecord& record) = 0;
  virtual void memory(const MemoryRecord& record) = 0;
};

/// A test of the loss scaler: the loss scale is infinite on one rank in one step, counted from 0.
struct InjectedOverflow {
  std::int32_t rank = -1;
  std::int64_t step = -1;
  friend bool operator==(const InjectedOverflow&, const InjectedOverflow&) = default;
};

struct BackendOptions {
  OptimizerScalars scalars;
  plan::ControlKnobs knobs{};
  std::vector<InjectedOverflow> inject{};
  std::uint64_t seed = 0;
  Observer* observer = nullptr;  ///< may be null; not owned
};

/// Interprets one rank's plan over the arenas of its memories. Everything it refers to outlives it. One thread.
///
/// Ops of the compute stream run where they are issued. A collective is started when issued and advances in poll(); an
/// op waits only for the collectives among its dependencies, yielding its core, with the communicator's deadline.
/// acquire and release keep the arena's books; nothing is allocated while training.
class Backend {
 public:
  Backend(const plan::Plan& plan, Communicator& communicator, const Memories& memories, DataSource& data,
          ThreadPool& pool, const BackendOptions& options);

  [[nodiscard]] Result<void> begin_phase(const plan::PhaseOps& phase);
  [[nodiscard]] Result<void> acquire(const plan::Op& op, std::span<const BufferId> buffers);
  [[nodiscard]] Result<void> issue(const plan::Op& op);
  [[nodiscard]] Result<void> release(const plan::Op& op, std::span<const BufferId> buffers);
  [[nodiscard]] Result<void> poll();
  [[nodiscard]] Result<void> end_phase(const plan::PhaseOps& phase);

  /// The step that the next phase belongs to, counted from 0; decides the data of its micro-batches.
  void set_step(std::int64_t step) { step_ = step; }
  void set_learning_rate(double rate) { options_.scalars.learning_rate = rate; }
  /// Mean loss of the last finished step.
  [[nodiscard]] float loss() const;
  /// What the last finished step decided; nothing where the strategy is not controlled.
  [[nodiscard]] std::optional<plan::ControlBlock> control() const;
  /// What was live on the device behind the last op of `part` that has been issued.
  [[nodiscard]] const CategoryBytes& live_after(plan::Part part) const {
    return live_after_[static_cast<std::size_t>(part)];
  }
  /// Since the start of the phase.
  [[nodiscard]] const CommunicationTime& communication_time() const { return communication_time_; }
  /// An arena's own high-water mark since the start of the phase, or of the run.
  [[nodiscard]] const ArenaLedger& phase_ledger(Memory memory) const {
    return ledgers_[static_cast<std::size_t>(memory)];
  }
  [[nodiscard]] Bytes peak(Memory memory) const { return peaks_[static_cast<std::size_t>(memory)]; }
  [[nodiscard]] Bytes live_peak(Memory memory) const { return live_peaks_[static_cast<std::size_t>(memory)]; }
  /// Filled by the digest phase, on the first data-parallel rank: that of its part of the model.
  [[nodiscard]] const StateDigest& digest() const { return digest_; }
  /// Bytes of optimizer state in use on this rank: what its steps touch, and a 4-byte count per parameter with state.
  [[nodiscard]] Bytes optimizer_state_bytes() const;

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
  [[nodiscard]] std::int64_t count(const plan::Operand& operand) const {
    return operand.bytes / bytes_per_element(plan_.buffer(operand.buffer).dtype);
  }
  [[nodiscard]] float* floats(const plan::Operand& operand) const { return reinterpret_cast<float*>(at(operand)); }
  /// What the operand holds, all of it.
  template <class T>
  [[nodiscard]] std::span<T> as(const plan::Operand& operand) const {
    return {reinterpret_cast<T*>(at(operand)), static_cast<std::size_t>(operand.bytes) / sizeof(T)};
  }
  [[nodiscard]] Result<void> start(const plan::Op& op, const plan::Communicate& call);
  /// Waits for a collective in flight, and for those started before it.
  [[nodiscard]] Result<void> wait_for(OpId op);
  void land();  ///< the oldest flight
  [[nodiscard]] Result<void> load_batch(const plan::Op& op, const plan::LoadBatch& batch);
  void compute(const plan::Op& op, const plan::Compute& c);
  void initialize(const plan::Op& op, const plan::Initialize& a);
  /// run(local, whole, n): stretches of a range's elements that lie together in the whole parameter.
  template <class Run>
  void for_each_run(const plan::ParamRange& range, const Run& run) const;
  void optimizer_step(const plan::Op& op, const plan::OptimizerStep& a);
  void mean_loss(const plan::Op& op);
  void load_scalars(const plan::Op& op);
  void begin_control(const plan::Op& op);
  void inspect(const plan::Op& op, const plan::InspectGradient& a);
  void decide(const plan::Op& op, const plan::Decide& a);
  void digest_flat(const plan::Op& op, const plan::Digest& a);
  [[nodiscard]] Result<void> check_operands(const plan::Op& op) const;
  /// In builds with guards: fills the gap behind a buffer that begins to live.
  [[nodiscard]] Result<void> set_guard(const plan::Buffer& buffer);
  /// Errc::internal where the gap behind a buffer that ceases to live is no longer as it was filled.
  [[nodiscard]] Result<void> check_guard(const plan::Op& op, const plan::Buffer& buffer) const;
  [[nodiscard]] Memory memory_of(const plan::Operand& operand) const { return plan_.buffer(operand.buffer).memory; }
  [[nodiscard]] bool touches_disk(const plan::Op& op) const;
  /// A copy from or to the disk, or a birth on it.
  [[nodiscard]] Result<void> use_disk(const plan::Op& op);
  [[nodiscard]] ArenaLedger& ledger_of(const plan::Buffer& buffer) {
    return ledgers_[static_cast<std::size_t>(buffer.memory)];
  }

  const plan::Plan& plan_;
  plan::Position position_;
  Communicator& communicator_;
  const Memories& memories_;
  DataSource& data_;
  ThreadPool& pool_;
  BackendOptions options_;
  std::array<CategoryBytes, static_cast<std::size_t>(plan::Part::digest) + 1> live_after_{};  ///< by part
  std::array<ArenaLedger, kMemoryCount> ledgers_{ArenaLedger(Memory::device), ArenaLedger(Memory::host),
                                                 ArenaLedger(Memory::disk)};
  std::array<Bytes, kMemoryCount> peaks_{};
  std::array<Bytes, kMemoryCount> live_peaks_{};
  std::deque<Flight> flights_;
  CommunicationTime communication_time_;
  std::vector<CommSegment> segments_;  ///< scratch of start(), kept so that nothing is allocated while training
  StateDigest digest_;
  std::int64_t step_ = 0;
};

}  // namespace shard::cpu
