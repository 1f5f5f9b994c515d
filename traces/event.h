// What a trace says about a run: plain structs for its header, its events and its totals.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/base/ids.h"

namespace shard {

/// Where the times and bytes of a trace come from.
enum class TraceKind : std::uint8_t {
  predicted = 0,  ///< the simulator's virtual clock and ledger
  measured = 1,   ///< a clock and an arena
};

[[nodiscard]] constexpr const char* to_string(TraceKind kind) {
  switch (kind) {
    case TraceKind::predicted: return "predicted";
    case TraceKind::measured: return "measured";
  }
  return "?";
}

/// A unit of parameters: what is gathered, released and reduced in one call. Its id is its place in the table.
struct UnitInfo {
  std::string name{};         ///< "chunk 3"; empty where not known
  std::int64_t elements = 0;  ///< gathered whole, padding included
  std::int64_t bytes = 0;     ///< of these

  friend bool operator==(const UnitInfo&, const UnitInfo&) = default;
};

/// One choice of the strategy behind the plan.
struct StrategyField {
  std::string name{};   ///< with its unit: "chunk_elements"
  std::string value{};  ///< as the option takes it; empty for what is not set
  bool telling = true;  ///< false: says nothing beside the others, and is left out where room is short

  friend bool operator==(const StrategyField&, const StrategyField&) = default;
};

/// What may be used of a memory, as far as it is known: a limit, not what an arena sets aside.
struct MemoryCapacity {
  Rank rank{};  ///< invalid: every rank
  Memory memory = Memory::device;
  std::int32_t sharers = 1;  ///< how many ranks share these bytes: those of a host its memory
  std::int64_t bytes = 0;

  friend bool operator==(const MemoryCapacity&, const MemoryCapacity&) = default;
};

/// What is true of the whole trace. All times of a trace are nanoseconds of one clock with an arbitrary zero.
struct Header {
  TraceKind kind = TraceKind::predicted;
  std::int32_t world_size = 1;                    ///< ranks of the run, also where the trace holds only some of them
  std::string plan_hash{};                        ///< lower-case hex; empty where no plan is behind the trace
  std::string parent_plan_hash{};                 ///< the plan this one was made again from; empty for none
  std::int64_t clock_ns = 0;                      ///< the trace's clock at one moment ...
  std::int64_t wall_ns = 0;                       ///< ... and Unix time at the same moment; 0 in predicted traces
  std::array<std::uint8_t, 16> uuid{};            ///< tells recordings apart; all zero where not needed
  std::map<std::string, std::string> metadata{};  ///< "model", "cluster", "command", ...
  std::vector<UnitInfo> units{};                  ///< indexed by UnitId
  std::vector<StrategyField> strategy{};          ///< in the order in which a strategy's fields are told
  std::vector<MemoryCapacity> capacities{};

  friend bool operator==(const Header&, const Header&) = default;
};

using TrackId = Id<struct TrackTag>;
using NameId = Id<struct NameTag>;

/// A line of a program that was being executed.
struct StackFrame {
  /// Python gives lines to what it makes up, and PyTorch writes the absent one as 2^64 - 1.
  static constexpr std::int32_t kNoLine = INT32_MAX;
  [[nodiscard]] bool has_line() const { return line > 0 && line != kNoLine; }
  /// As PyTorch writes it.
  [[nodiscard]] std::uint64_t written_line() const {
    return line == kNoLine ? UINT64_MAX : static_cast<std::uint64_t>(line);
  }

  NameId function{};
  NameId file{};
  std::int32_t line = 0;  ///< from 1; 0 or kNoLine where not known

  friend bool operator==(const StackFrame&, const StackFrame&) = default;
};
using FrameId = Id<struct StackFrameTag>;
using StackId = Id<struct StackTag>;

/// A stack: its innermost frame, and the stack of whoever called that; invalid at the outermost. A caller's id is
/// smaller, so stacks share their outer ends and each is held once.
struct StackNode {
  FrameId frame{};
  StackId caller{};

  friend bool operator==(const StackNode&, const StackNode&) = default;
};

/// Which kind of row of the timeline.
enum class TrackKind : std::uint8_t {
  stream = 0,  ///< spans of one Stream of one rank
  memory = 1,  ///< memory events of one Memory of one rank
  other = 2,   ///< spans of anything else: a host thread, a kernel queue
};

/// One row of the timeline. `stream` counts for kind stream, `memory` for kind memory; `name` may be empty.
struct Track {
  Rank rank{};
  TrackKind kind = TrackKind::stream;
  Stream stream = Stream::compute;
  Memory memory = Memory::device;
  std::string name{};

  friend bool operator==(const Track&, const Track&) = default;
};

/// An op, or a part of one, that took time. Two spans of one op in one step and micro-step are two parts of it.
struct Span {
  TrackId track{};
  std::int64_t begin_ns = 0;
  std::int64_t duration_ns = 0;  ///< >= 0
  OpId op{};
  NameId name{};
  Phase phase = Phase::steady_step;
  std::int32_t step = 0;        ///< counts every training step of the run from 0; the first step is step 0
  std::int32_t micro_step = 0;  ///< within the step, from 0; -1 for an op that runs once per step
  std::int64_t bytes = 0;       ///< moved or communicated; 0 for computation
  UnitId unit{};
  /// Of the duration, how long nothing was moved: a collective of a measured run waits until the other ranks have come,
  /// and on the CPU while this rank computes. The rest is the transfer, what a prediction gives. 0..duration.
  std::int64_t waiting_ns = 0;
  Part part = Part::unknown;
  Activity activity = Activity::unknown;

  [[nodiscard]] std::int64_t busy_ns() const { return duration_ns - waiting_ns; }
  friend bool operator==(const Span&, const Span&) = default;
};

/// A buffer acquired (+) or released (-). Events of one rank and memory are written in plan order, whatever their time:
/// peaks are taken over that order.
struct MemoryEvent {
  Rank rank{};
  Memory memory = Memory::device;
  BufferId buffer{};
  std::int64_t offset_bytes = 0;  ///< within the arena
  std::int64_t delta_bytes = 0;   ///< size of the buffer; negative when released
  Category category = Category::workspace;
  OpId op{};
  std::int64_t time_ns = 0;
  Phase phase = Phase::steady_step;
  std::int32_t step = 0;
  UnitId unit{};
  /// Acquired: how much of `delta_bytes` the program asked for, where an allocator gave more; 0 where not known.
  std::int64_t requested_bytes = 0;
  StackId stack{};  ///< who acquired or released it; invalid where not known

  friend bool operator==(const MemoryEvent&, const MemoryEvent&) = default;
};

/// Peaks of one rank's memory in one phase, as the producer itself saw them: in measured traces the arena's own
/// high-water mark, a witness independent of the memory events.
struct ArenaSummary {
  Rank rank{};
  Memory memory = Memory::device;
  Phase phase = Phase::steady_step;
  std::int64_t peak_bytes = 0;       ///< extent: highest offset used, alignment included
  std::int64_t live_peak_bytes = 0;  ///< largest sum of live buffers
  std::int64_t capacity_bytes = 0;   ///< size of the arena; 0 where unknown

  friend bool operator==(const ArenaSummary&, const ArenaSummary&) = default;
};

/// All calls of one collective by one rank, summed over creation and steps; a digest after them is left out.
struct CollectiveTotal {
  Rank rank{};
  Collective kind = Collective::all_gather;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< full buffer per call, padding included

  friend bool operator==(const CollectiveTotal&, const CollectiveTotal&) = default;
};

/// One sample of a value over time: loss, resident bytes, queue length. The name carries the unit ("resident_bytes").
struct Counter {
  Rank rank{};
  NameId name{};
  std::int64_t time_ns = 0;
  double value = 0;

  friend bool operator==(const Counter&, const Counter&) = default;
};

/// What a unit of parameters is doing.
enum class UnitState : std::uint8_t { sharded = 0, gathering = 1, gathered = 2, reducing = 3, moving = 4 };

/// From this time on the unit is in this state and memory on this rank.
struct ChunkState {
  Rank rank{};
  UnitId unit{};
  std::int64_t time_ns = 0;
  Memory memory = Memory::device;
  UnitState state = UnitState::sharded;

  friend bool operator==(const ChunkState&, const ChunkState&) = default;
};

/// Why one span waits for another.
enum class FlowKind : std::uint8_t { dependency = 0, launch = 1, communication = 2 };

/// An arrow between two spans, each named by its track and a time within it.
struct Flow {
  TrackId from_track{};
  std::int64_t from_ns = 0;
  TrackId to_track{};
  std::int64_t to_ns = 0;
  FlowKind kind = FlowKind::dependency;

  friend bool operator==(const Flow&, const Flow&) = default;
};

}  // namespace shard
