// A process between this one and somebody's program: it starts it, adopts all that it leaves behind, and lets nothing
// outlive it, whatever becomes of either.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace shard::profiler {

/// For a program that is told to end to write what it has; then it is killed.
inline constexpr std::chrono::seconds kGrace{10};
/// For what a program leaves behind to end by itself.
inline constexpr std::chrono::seconds kToLeave{2};

/// What the keeper is told, a message each.
struct Order {
  std::int32_t signal = 0;   ///< for the program
  std::int32_t bounded = 0;  ///< 1: what has not ended kGrace later is killed
};

/// What the keeper says, once, when all has ended.
struct Report {
  std::int32_t not_started = 0;  ///< the errno of exec
  std::int32_t status = 0;       ///< of the program, as from waitpid
  std::int64_t peak_resident_bytes = 0;
};

/// The life of a keeper, in a process that was forked for it. `line`: a SOCK_SEQPACKET on which orders come. `start`
/// forks and executes the program: its process, or the errno that it failed with, below zero.
///
/// A signal is passed on as a terminal would: to all of the program's that is in this process group, unless it came to
/// the whole group. When only such are left that ignored the signal before it came, they get SIGTERM, and when these
/// ignored that, SIGKILL; what ignores it only since then has kGrace. When the program has ended, what is left gets
/// SIGTERM: at once where it was told to end, or kToLeave later; kGrace after that it is killed. When the line breaks,
/// because the process at its other end was killed, all has a second.
[[noreturn]] void keep(int line, const std::function<int()>& start);

}  // namespace shard::profiler
