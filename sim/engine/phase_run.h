// What one rank did in one phase: the raw record that reports and traces are made from.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/ir/plan.h"
#include "sim/memory/arena.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::engine {

/// What kind of time an op takes.
enum class Work : std::uint8_t { compute, communication, transfer };

struct OpRun {
  const plan::Op* op = nullptr;  ///< of the plan that was simulated
  Interval interval;
  Work work = Work::compute;
  Bytes bytes;  ///< communicated or transferred; 0 for computation
  Flops flops;
};

/// A buffer taken (+) or given back (-), in plan order.
struct MemoryChange {
  const plan::Op* op = nullptr;
  BufferId buffer;
  Bytes delta;   ///< arena bytes: rounded up to the alignment
  Seconds time;  ///< begin of the op that takes, end of the op that gives back; never before the change before it
};

/// One memory's arena in one phase.
struct ArenaRun {
  Memory memory = Memory::device;
  Bytes extent;      ///< highest offset used, what earlier phases left included
  Bytes live_begin;  ///< at the beginning of the phase
  Bytes live_peak;
  Bytes live_end;
  CategoryBytes begin_by_category{};
  CategoryBytes end_by_category{};
  CategoryBytes peak_by_category{};  ///< at the first moment that reached live_peak
  std::vector<BufferId> resident;    ///< live at the beginning of the phase
};

struct CollectiveCount {
  std::int64_t count = 0;
  Bytes bytes;  ///< full buffer per call, padding included
  friend bool operator==(const CollectiveCount&, const CollectiveCount&) = default;
};
using CollectiveCounts = std::array<CollectiveCount, kCollectiveCount>;  ///< indexed by Collective

/// Of a folded plan (Plan::micro_step_times): each of its micro-steps once, one behind the other, but for the counts of
/// collectives, which are those of the whole phase.
struct PhaseRun {
  Phase phase{};
  Interval interval;
  std::vector<OpRun> ops;             ///< in plan order
  std::vector<MemoryChange> changes;  ///< of all memories, in plan order
  std::array<ArenaRun, kMemoryCount> arenas;
  CollectiveCounts collectives{};
};

}  // namespace shard::engine
