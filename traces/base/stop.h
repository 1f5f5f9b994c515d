// How a process is stopped from outside: one thread takes SIGINT, SIGTERM, SIGHUP and SIGQUIT, says so, cleans up, and
// dies of the signal. No other thread runs a handler: libraries that keep the stack pointer in their own buffers while
// they compute (oneDNN's generated code) would have a signal frame written over them.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "traces/base/result.h"

namespace shard::stop {

/// Prints, or passes on, why this process ends. Called once, by the thread.
using Say = std::function<void(const Error&)>;

/// Blocks the signals in the calling thread and in those it starts, and starts the thread that takes them. To be made
/// by main() before other threads exist; one at a time. SIGHUP and SIGQUIT are left alone where they were
/// ignored (nohup, the background of a shell).
///
/// At a signal the thread takes the lock of NotNow for good, says "stopped by signal: Interrupt" with the place of the
/// run (run_place.h), or the cause that is known; runs the clean-ups, the last one first; removes the temporary files
/// (temporary_files.h); and dies of the signal, as a shell and a parent expect. A second signal, later than what sends
/// twice at once (timeout(1)) would send, ends the process at once.
class SignalThread {
 public:
  explicit SignalThread(Say say);
  /// The process ends in its own way, or never if it is being stopped. The signals stay blocked: what comes now finds
  /// all done and nothing to stop.
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  /// Errc::unavailable when the thread could not be started; then the signals keep their default action.
  [[nodiscard]] const Result<void>& started() const { return started_; }

 private:
  Result<void> started_;
};

/// As long as one lives no signal is acted on. Where one is already being acted on the constructor does not return: the
/// process is about to end. For what must not be half done, or said beside "stopped": making a thing and registering
/// its clean-up, a last message. May be nested.
class NotNow {
 public:
  NotNow();
  NotNow(const NotNow&) = delete;
  NotNow& operator=(const NotNow&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Something that the thread is to know; forgotten when this goes.
class [[nodiscard]] Registration {
 public:
  Registration() = default;
  Registration(Registration&& other) noexcept;
  Registration& operator=(Registration&& other) noexcept;
  ~Registration();
  /// Not forgotten any more.
  void keep() { id_ = 0; }

 private:
  friend struct Registry;
  explicit Registration(int id) : id_(id) {}
  int id_ = 0;
};

/// Called when the process is stopped, while its other threads go on; must not throw, nor wait for them.
Registration at_stop(std::function<void()> clean_up);
/// Asked at a signal: what the signal is only a consequence of (a launcher that ends the ranks because one died).
Registration with_cause(std::function<std::optional<Error>()> cause);
/// Says instead of the SignalThread's own.
Registration with_say(Say say);
/// Called by the thread again and again, the lock of NotNow held.
Registration every(std::chrono::milliseconds interval, std::function<void()> tick);

/// For work whose answer so far is worth more than a quick end. As long as it lives, the first signal ends nothing: the
/// thread calls `ask`, the work comes to its end, and the process dies of the signal when its SignalThread goes. A
/// later one ends it at once, as ever. Of several, the last one is called. `heeds`: whose signals are such a request;
/// those of others end the process; null: anybody's.
Registration at_first_signal(std::function<void(int signal)> ask, std::function<bool(pid_t sender)> heeds = nullptr);

/// The request of a first signal that came another way. Whatever signal comes behind it is a second one.
void ask(int signal);

/// Work that was asked to end has: the process dies of `signal` when its SignalThread goes, or with 0 ends in its own
/// way. Asked or not: whoever ends by what another process was asked says so too.
void end_by(int signal);

/// For ticks: ends the process as a signal would, but with `error` and its exit code.
[[noreturn]] void end(const Error& error);

/// The calling thread's mask without the signals that the thread takes: for a child before its exec. Handing over by
/// exec without it keeps a signal that arrives meanwhile for the next program's thread.
[[nodiscard]] sigset_t mask_for_children();

}  // namespace shard::stop
