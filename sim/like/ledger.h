// Adds up what a plan takes, gives back, sends and copies between memories: nothing but what its ops say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/plan.h"
#include "sim/ir/run.h"
#include "sim/like/passes.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::like {

/// Calls of one kind; bytes of a call are the full buffer.
struct Calls {
  std::int64_t count = 0;
  Bytes bytes{};
  friend bool operator==(const Calls&, const Calls&) = default;
};

/// Sums since the phase began, and what is live, at a mark. "Model data" is 16-bit payloads and fp32 masters
/// (categories parameter, gathered, master_parameter), read between ops: a copy's source and destination do not stand
/// side by side in it, as in frameworks that account after each operation.
struct LedgerMoment {
  std::string name{};
  Phase phase{};
  Calls calls[kCollectiveCount] = {};
  Bytes to_device{};                    ///< copied from host memory
  Bytes to_host{};                      ///< copied from device memory
  Bytes model_data[kMemoryCount] = {};  ///< now
  Bytes model_data_peak{};              ///< on the device, since the phase began, its first moment included
  friend bool operator==(const LedgerMoment&, const LedgerMoment&) = default;
};

/// A buffer live at the device's peak.
struct LedgerHolder {
  std::string name;
  Category category{};
  Bytes bytes;
};

/// A backend of plan::run(): phases in plan order, a steady step as often as wanted.
class Ledger {
 public:
  /// Marks in plan order. Both live as long as the ledger.
  Ledger(const plan::Plan& plan, const std::vector<Mark>& marks);

  Result<void> begin_phase(const plan::PhaseOps& phase);
  Result<void> acquire(const plan::Op& op, std::span<const BufferId> buffers);
  Result<void> issue(const plan::Op& op);
  Result<void> release(const plan::Op& op, std::span<const BufferId> buffers);
  Result<void> poll() { return {}; }
  Result<void> end_phase(const plan::PhaseOps& phase);

  /// In the order reached.
  [[nodiscard]] const std::vector<LedgerMoment>& moments() const { return moments_; }
  /// Now.
  [[nodiscard]] Bytes model_data(Memory memory) const { return now_.model_data[static_cast<std::size_t>(memory)]; }
  /// Everything on the device, copies' source and destination together, over all phases run.
  [[nodiscard]] Bytes device_peak() const { return peak_; }
  [[nodiscard]] const std::string& peak_op() const { return peak_op_; }
  /// What was live then, largest first.
  [[nodiscard]] std::vector<LedgerHolder> holders_at_peak() const;
  /// What is live now, by buffer: a steady step must give back exactly what it took.
  [[nodiscard]] const std::vector<bool>& live() const { return live_; }

 private:
  void note_marks();
  void add(BufferId id, bool taken);

  const plan::Plan& plan_;
  const std::vector<Mark>& marks_;
  const plan::PhaseOps* phase_ = nullptr;
  std::size_t done_ = 0;
  LedgerMoment now_{};
  std::vector<LedgerMoment> moments_;
  std::vector<bool> live_;
  Bytes device_;
  Bytes peak_;
  std::string peak_op_;
  std::vector<bool> live_at_peak_;
};

}  // namespace shard::like
