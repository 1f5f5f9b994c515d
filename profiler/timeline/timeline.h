// Makes a trace of what profiled processes left: one clock, work joined to the calls that caused it and to their ops.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profiler/spool/read_spool.h"
#include "traces/base/ids.h"
#include "traces/import/import.h"

namespace shard::profiler {

/// What our own programs push around the calls of an op, so that what the device does for them carries it.
struct PushedOp {
  std::int32_t op = -1;  ///< negative: none, the calls belong to the rank alone
  std::int32_t rank = 0;

  [[nodiscard]] constexpr std::uint64_t id() const {
    return std::uint64_t{static_cast<std::uint32_t>(op)} << 32 | static_cast<std::uint32_t>(rank);
  }
  [[nodiscard]] static constexpr PushedOp of(std::uint64_t id) {
    return {static_cast<std::int32_t>(id >> 32), static_cast<std::int32_t>(id)};
  }
};

/// Which phase of our own program a range is.
struct PhaseStep {
  Phase phase = Phase::steady_step;
  std::int32_t step = 0;

  [[nodiscard]] constexpr std::uint64_t packed() const {
    return std::uint64_t{static_cast<std::uint8_t>(phase)} << 32 | static_cast<std::uint32_t>(step);
  }
  [[nodiscard]] static constexpr PhaseStep of(std::uint64_t packed) {
    const std::uint64_t phase = packed >> 32;
    return {phase < kPhaseCount ? static_cast<Phase>(phase) : Phase::steady_step, static_cast<std::int32_t>(packed)};
  }
};

/// In `detail` of EventKind::external: whose ids these are.
enum class Pushed : std::uint8_t { others = 0, ours = 1 };

struct Process {
  SpoolContent content;
  Rank rank{};  ///< invalid: its devices are the ranks, as far as they go
};

/// What joining found.
struct Joined {
  std::int64_t device_spans = 0;    ///< kernels, copies and fills
  std::int64_t with_op = 0;         ///< of these, joined to an op of ours
  std::int64_t without_call = 0;    ///< of these, those whose call is not there
  std::int64_t twice = 0;           ///< events that came twice and are there once
  std::int64_t clock_bound_ns = 0;  ///< how far off device times can be on the host's clock, at most
};

/// A stretch between two pieces of work of a device.
struct Gap {
  std::int64_t begin_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t launch_bound_ns = 0;  ///< of it, while the call that caused the next work had not returned
  std::string next{};                ///< the work that ended it

  friend bool operator==(const Gap&, const Gap&) = default;
};
inline constexpr std::size_t kLongestGaps = 5;

/// Why a device of a process had nothing to do between its first and its last work.
struct Idle {
  Rank rank{};
  std::uint32_t device = 0;
  std::int64_t idle_ns = 0;          ///< nothing ran
  std::int64_t launch_bound_ns = 0;  ///< of this, while the call that caused the next work had not returned
  std::int64_t gaps = 0;             ///< stretches in which nothing ran
  std::int64_t launch_bound_gaps = 0;
  std::vector<Gap> longest{};  ///< up to kLongestGaps, the longest first; on the clock of the trace

  friend bool operator==(const Idle&, const Idle&) = default;
};

struct Timeline {
  LoadedTrace loaded;
  Joined joined;
  std::vector<Idle> idle;  ///< by process and device
};

/// Events may come in any order, late and more than once. Times: the steady clock of the first process; of the others
/// as far as Unix time agrees. What was dropped is in the trace's count, and notes say what cannot be told.
[[nodiscard]] Timeline timeline_of(std::span<const Process> processes);

}  // namespace shard::profiler
