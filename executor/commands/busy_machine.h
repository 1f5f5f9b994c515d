// How busy other programs keep this machine: what is measured beside them is slower than the machine.
#pragma once

#include <chrono>
#include <string>

namespace shard::commands {

/// That this process may run on.
[[nodiscard]] int cores_here();

/// Whether so many of the cores taken by others is worth saying.
[[nodiscard]] bool is_busy(double cores);
/// The begin of a note: so many cores were kept busy by other programs.
[[nodiscard]] std::string busy_text(double cores);

/// Seconds of processors since it was made.
class ProcessorTime {
 public:
  ProcessorTime();
  [[nodiscard]] double passed() const;
  [[nodiscard]] double of_this_process() const;
  /// Of its children that have ended and were waited for.
  [[nodiscard]] double of_ended_children() const;
  /// Of all programs on the cores that this process may run on; 0 where the system does not say (/proc/stat).
  [[nodiscard]] double of_cores_here() const;
  /// How many of these cores programs kept busy that are not those of `own_seconds`; 0 where the system does not say.
  [[nodiscard]] double cores_of_others(double own_seconds) const;

 private:
  std::chrono::steady_clock::time_point begin_;
  double own_, children_, cores_;
};

}  // namespace shard::commands
