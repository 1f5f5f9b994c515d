// What becomes of an exception that nobody caught: an error with its exit code, in the main thread and in any other.
#pragma once

#include "traces/base/result.h"

namespace shard::cli {

/// The exception being handled, as an error; for a `catch (...)` only. Memory that is short is Errc::unavailable and
/// names the limit on this process's address space, where there is one; so is a thread that could not be started.
/// Anything else is Errc::internal.
[[nodiscard]] Error uncaught_error();

/// What `work` returns (a Result), or the error of the exception that left it: for who has to tell others before it
/// goes.
template <class Work>
[[nodiscard]] auto guarded(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return uncaught_error();
  }
}

/// From now on an exception that leaves another thread, or a function that must not throw, ends the process with that
/// error's message and exit code, its temporary files removed, instead of SIGABRT.
void install_terminate_handler();

}  // namespace shard::cli
