// What an op and a change of memory are called in a trace: the same for every interpreter, so that traces line up.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "sim/ir/plan.h"
#include "traces/event.h"

namespace shard::plan {

/// Which repetition of a phase, on which rank.
struct EventPlace {
  Rank rank{};
  Phase phase = Phase::steady_step;
  std::int32_t step = 0;  ///< creation and the first step: 0; the digest: the last step
};

/// The unit that an op gathers, reduces, adds up or moves; invalid for others.
[[nodiscard]] UnitId unit_of(const Op& op);

/// All of a span but its track and name; bytes are those communicated or copied.
[[nodiscard]] Span span_of(const Plan& plan, const Op& op, const EventPlace& place, std::int64_t begin_ns,
                           std::int64_t end_ns);

/// `acquired` or given back at `time_ns` by `op`.
[[nodiscard]] MemoryEvent memory_event_of(const Plan& plan, const Op& op, BufferId buffer, bool acquired,
                                          const EventPlace& place, std::int64_t time_ns);

/// A unit's state, and the memory that it is in or leaves.
struct UnitMoment {
  UnitState state = UnitState::sharded;
  Memory memory = Memory::device;
};
struct UnitChange {
  UnitId unit{};
  std::optional<UnitMoment> begin{};
  UnitMoment end{};
};
/// What becomes of a unit when an op that gathers, reduces or moves it, or creates it away from the device, begins and
/// ends; nothing for other ops.
[[nodiscard]] std::optional<UnitChange> unit_change_of(const Plan& plan, const Op& op);
/// Where a unit rests again when this buffer is given back; nothing for buffers that do not decide it.
[[nodiscard]] std::optional<Memory> unit_rests_after(const Plan& plan, const Buffer& released);

}  // namespace shard::plan
