// Starts N ranks of a program on this machine under mpirun and waits for them: whatever happens, nothing stays behind.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "traces/base/result.h"

namespace shard {

/// How a job ended.
struct JobEnd {
  int exit_code = 0;
  std::string message;  ///< for stderr, once; empty when there is nothing to say
  /// The signal that ended the parent's wait (SIGINT, SIGTERM, SIGHUP), or 0. The ranks are gone; the caller should
  /// restore the default action and raise it, so that its own parent sees it.
  int signal = 0;
};

/// Runs `arguments` (the first is the program's path) as `ranks` ranks. Works as root and with more ranks than cores;
/// cluster variables of the environment are hidden, so all ranks are on this machine. Each rank must connect its
/// ParentLine and report its end.
///
///   all ranks returned 0                  0
///   a rank reported a code of its own     that code (not 75) and its message: the cause, where others only noticed
///   a rank died                           75, "rank 2 died: signal 9 (Killed)"
///   ranks reported 75 only                75 and the first message
///
/// Errc::unavailable when mpirun is absent or cannot start ranks, with what it said.
/// Must be called before other threads or children exist: it waits for every child, and becomes the subreaper of what
/// mpirun leaves behind. Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD while it runs.
[[nodiscard]] Result<JobEnd> run_job(std::span<const std::string> arguments, int ranks);

/// The path of the running program, for run_job.
[[nodiscard]] std::string own_program();

}  // namespace shard
