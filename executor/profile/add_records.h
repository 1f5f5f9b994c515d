// Puts what devices recorded into the trace of a run: work beside the ops that caused it, ops with the times of their
// work, memory as the driver saw it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profiler/timeline/timeline.h"
#include "sim/ir/plan_set.h"
#include "traces/writer.h"

namespace shard::device_profile {

/// Memory of a rank as the driver saw it, whatever the arena says of itself.
struct Allocations {
  Rank rank{};
  Memory memory = Memory::device;
  std::int64_t count = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t largest_bytes = 0;  ///< of one allocation

  friend bool operator==(const Allocations&, const Allocations&) = default;
};

/// What came of it.
struct DeviceRecords {
  profiler::Joined joined{};
  std::vector<profiler::Idle> idle{};
  std::vector<Allocations> allocations{};  ///< by rank and memory
  std::int64_t dropped = 0;
};

/// Which steps, counted from 0, are wanted; null: all that was recorded.
using WantedStep = std::function<bool(Phase phase, std::int64_t step)>;

/// Kernels, copies and fills come as spans on tracks of their device, parts of the op that they belong to; that op as a
/// stretch (Activity::mark) of its plan's stream, from its first work to its last. Calls of the runtime and arrows from
/// them to work come too; allocations as counters allocated_device_bytes and allocated_host_bytes, since the trace's
/// memory events are the plan's buffers.
[[nodiscard]] DeviceRecords add_records(const profiler::Timeline& timeline, const plan::PlanSet& plans,
                                        const WantedStep& wanted, Writer& writer);

}  // namespace shard::device_profile
