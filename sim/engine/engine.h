// The simulator's backend: interprets a plan in virtual time, with a ledger in place of memory.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/cost/op_cost.h"
#include "sim/engine/phase_run.h"
#include "sim/engine/timeline.h"
#include "sim/ir/effects.h"
#include "sim/ir/plan.h"
#include "sim/ir/run.h"
#include "sim/memory/arena.h"

namespace shard::engine {

/// Runs phases of one plan, one after another: what a phase leaves live the next one finds. Needs a plan whose buffers
/// have their offsets. Errors are Errc::internal: a buffer without offset, taken twice, over another, or given back
/// without having been taken; all would be faults of the compiler.
class Engine {
 public:
  /// Both are borrowed and must outlive the engine and the runs it makes.
  Engine(const plan::Plan& plan, const cluster::Cluster& cluster);

  // plan::Backend
  Result<void> begin_phase(const plan::PhaseOps& phase);
  Result<void> acquire(const plan::Op& op, std::span<const BufferId> buffers);
  Result<void> issue(const plan::Op& op);
  Result<void> release(const plan::Op& op, std::span<const BufferId> buffers);
  Result<void> poll() { return {}; }
  Result<void> end_phase(const plan::PhaseOps& phase);

  /// The phase that has just ended.
  [[nodiscard]] PhaseRun take() { return std::move(run_); }

 private:
  /// What an op takes of time, sends and computes, by what it is alone.
  struct Price {
    const plan::Op* op = nullptr;
    Seconds seconds;
    Flops flops;
    std::optional<plan::Sends> sends;
    Bytes bytes_read;
  };
  /// That of the current op until the next is asked for. The steady step has the ops of the first under their ids.
  [[nodiscard]] const Price& price(const plan::Op& op);
  [[nodiscard]] Result<void> change(const plan::Op& op, BufferId buffer, bool taken, Seconds time);
  [[nodiscard]] ArenaLedger& ledger(Memory memory) { return ledgers_[static_cast<std::size_t>(memory)]; }

  const plan::Plan& plan_;
  cost::OpCost cost_;
  Timeline timeline_;
  std::array<ArenaLedger, kMemoryCount> ledgers_;
  std::vector<bool> live_;  // by BufferId
  PhaseRun run_;
  OpRun current_;
  std::vector<Price> prices_;     // by OpId
  const Price* price_ = nullptr;  // of the current op
};

static_assert(plan::Backend<Engine>);

}  // namespace shard::engine
