// The books that a rank keeps of its arenas while it runs: what is live, how high each ever got.
#pragma once

#include <array>
#include <span>

#include "executor/rank/observer.h"
#include "sim/ir/plan.h"
#include "sim/memory/arena.h"

namespace shard::executor {

/// Kept in plan order, whatever the ops' streams do. Holds no bytes.
class Books {
 public:
  /// Both outlive this; `observer` may be null.
  Books(const plan::Plan& plan, Observer* observer) : plan_(plan), observer_(observer) {}

  void begin_phase();
  /// Errc::internal where a buffer is live already, or meets a live one.
  [[nodiscard]] Result<void> acquire(const plan::Op& op, std::span<const BufferId> buffers);
  /// Errc::internal where a buffer is not live.
  [[nodiscard]] Result<void> release(const plan::Op& op, std::span<const BufferId> buffers);
  /// Errc::internal where an operand lies outside of its buffer, or the buffer is not live. `where`: the rank.
  [[nodiscard]] Result<void> check_operands(const plan::Op& op, std::int32_t shard_rank, Rank rank) const;

  /// What was live on the device behind the last op of `part` that has been issued.
  [[nodiscard]] const CategoryBytes& live_after(plan::Part part) const {
    return live_after_[static_cast<std::size_t>(part)];
  }
  /// An arena's own high-water mark since the start of the phase, or of the run.
  [[nodiscard]] const ArenaLedger& phase_ledger(Memory memory) const {
    return ledgers_[static_cast<std::size_t>(memory)];
  }
  [[nodiscard]] Bytes peak(Memory memory) const { return peaks_[static_cast<std::size_t>(memory)]; }
  [[nodiscard]] Bytes live_peak(Memory memory) const { return live_peaks_[static_cast<std::size_t>(memory)]; }

 private:
  [[nodiscard]] ArenaLedger& ledger_of(const plan::Buffer& buffer) {
    return ledgers_[static_cast<std::size_t>(buffer.memory)];
  }

  const plan::Plan& plan_;
  Observer* observer_;
  std::array<CategoryBytes, static_cast<std::size_t>(kPartCount)> live_after_{};  ///< by part
  std::array<ArenaLedger, kMemoryCount> ledgers_{ArenaLedger(Memory::device), ArenaLedger(Memory::host),
                                                 ArenaLedger(Memory::disk), ArenaLedger(Memory::pinned)};
  std::array<Bytes, kMemoryCount> peaks_{};
  std::array<Bytes, kMemoryCount> live_peaks_{};
};

}  // namespace shard::executor
