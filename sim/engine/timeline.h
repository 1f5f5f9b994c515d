// The virtual clock: when each op of a phase begins and ends, given how long each takes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/ir/op.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::engine {

struct Interval {
  Seconds begin;
  Seconds end;
  [[nodiscard]] Seconds length() const { return end - begin; }
};

/// Ops of one stream run in order; an op begins when its stream is free and all its dependencies have ended. Between
/// phases all streams meet. Ops are added in plan order, so that every dependency within the phase is known already;
/// a dependency on an op of an earlier phase has ended by then.
///
/// What is shown of a collective is when its data moves: in stream order, and not before that has landed which it
/// starts behind. Others may be in flight with it, waiting for their turn.
///
/// A collective begins when its own rank reaches it: ranks of one class reach it together, those of other classes are
/// taken to. Classes differ only in padding and in whose optimizer step is larger, so what is lost is the wait for the
/// slowest rank.
class Timeline {
 public:
  /// Where streams do not overlap, an op begins when all that was added before it has ended: one thread does it all.
  explicit Timeline(bool streams_overlap = true) : overlap_(streams_overlap) {}
  /// Starts a phase: no stream goes on before all have finished.
  void begin_phase();
  Interval add(const plan::Op& op, Seconds duration);
  /// The end of all that was added.
  [[nodiscard]] Seconds now() const { return now_; }

 private:
  struct Finish {
    std::int64_t phase = 0;
    Seconds end;
  };
  bool overlap_;
  std::array<Seconds, kStreamCount> free_{};
  std::vector<Finish> finish_;  // by OpId
  std::int64_t phase_ = 0;      // counts begin_phase()
  Seconds now_;
};

}  // namespace shard::engine
