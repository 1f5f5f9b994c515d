// Starts N ranks of a program on this machine under mpirun and waits for them: whatever happens, nothing stays behind.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/base/ids.h"
#include "traces/base/result.h"

namespace shard {

/// How a job ended.
struct JobEnd {
  int exit_code = 0;
  std::string message = {};           ///< what a rank reported, for stderr, once
  std::optional<Error> noticed = {};  ///< by the parent, where no rank said why
  std::string account = {};           ///< a sentence on where ranks were, beside the one or the other; may be empty
};

/// Whom the parent suspects when a job ends badly.
struct Suspects {
  std::optional<Rank> dead{};  ///< the first that died without a word
  std::vector<Rank> silent{};  ///< Watchdog::silent()
};

struct JobOptions {
  int ranks = 1;
  /// For a rank that does not come, falls silent or waits in a call without a deadline of its own.
  std::chrono::milliseconds deadline{60'000};
  /// Called once, as soon as a bad end is known: before the processes that are left are ended and files are removed,
  /// which takes as long as it takes. Prints.
  std::function<void(const JobEnd& end)> answer = nullptr;
  /// By rank: a file for each one's flight recorder, which outlives it; may be empty. They stay the caller's.
  std::vector<int> recorders{};
  /// What the recorders say of a death or a deadline, for JobEnd::account. Called before `answer`, while ranks may
  /// still run.
  std::function<std::string(const Suspects& suspects)> explain = nullptr;
  /// The signal that the ranks are to be asked to end by, which they then do by themselves; 0: none yet. Null: never.
  std::function<int()> asked = nullptr;
};

/// Runs `arguments` (the first is the program's path) as ranks. Works as root and with more ranks than cores; cluster
/// variables of the environment are hidden, so all ranks are on this machine. Each rank must connect its ParentLine,
/// beat (rank_watch.h) and report its end.
///
///   all ranks returned 0                  0
///   a rank reported 128 + a signal        that code and its message, when all ranks have ended: they did as asked
///   a rank reported a code of its own     that code (not 75) and its message: the cause, where others only noticed
///   a rank died                           75, "step 12: rank 2 died: signal 9 (Killed)"
///   ranks reported 75 only                75 and the first message
///   a rank is overdue (watchdog.h)        75, "step 12: rank 2 has not been heard of within 60 s"
///
/// Errc::unavailable when mpirun is absent or cannot start ranks, with what it said.
/// At most one at a time, in a process without other children: it waits for every child, and becomes the subreaper of
/// what mpirun leaves behind. A process that is stopped (traces/base/stop.h) ends ranks and mpirun at once and removes
/// their files.
[[nodiscard]] Result<JobEnd> run_job(std::span<const std::string> arguments, const JobOptions& options);

/// The path of the running program, for run_job.
[[nodiscard]] std::string own_program();

}  // namespace shard
