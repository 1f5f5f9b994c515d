// How busy other programs keep this machine: what is measured beside them is slower than the machine.
#pragma once

#include <chrono>

namespace shard::commands {

/// More of the cores than this taken by others is worth saying: a fifth slower is more than the laws are off by.
inline constexpr double kBusyShare = 0.2;

/// That this process may run on.
[[nodiscard]] int cores_here();
/// How many cores programs kept busy in the last minute, this one among them; 0 where the system does not say.
[[nodiscard]] double busy_cores();

/// Seconds of processors since it was made.
class ProcessorTime {
 public:
  ProcessorTime();
  [[nodiscard]] double passed() const;
  [[nodiscard]] double of_this_process() const;
  /// Of all programs on the cores that this process may run on; 0 where the system does not say (/proc/stat).
  [[nodiscard]] double of_cores_here() const;

 private:
  std::chrono::steady_clock::time_point begin_;
  double own_, cores_;
};

}  // namespace shard::commands
