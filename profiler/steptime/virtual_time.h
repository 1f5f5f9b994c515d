// Runs what a host gives a device in virtual time: streams, events, and a host that goes ahead.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/cost/laws/whole_step.h"

namespace shard::steptime {

enum class Deed : std::uint8_t {
  compute,   ///< a kernel, a copy
  exchange,  ///< a collective
  record,    ///< an event: what the stream has up to here
  wait,      ///< the stream waits for an event
  host_waits_for_all,
  host_waits_for_stream,
  host_waits_for_event,
};

/// What the host does, in its order. Times in seconds.
struct Given {
  Deed deed = Deed::compute;
  std::int64_t stream = 0, event = 0;
  double host = 0;      ///< that the host takes before it gives it
  double duration = 0;  ///< on the device, alone
};

struct Placed {
  double issued = 0;  ///< by the host
  double begin = 0, end = 0;
};

/// State of a run that goes on.
class VirtualTime {
 public:
  /// From the host's call to the kernel's begin, where the stream is free.
  static constexpr double kLaunch = 4e-6;
  /// Computing beside an exchange takes so much longer.
  static constexpr double kContention = cost::kContention;

  /// Launches that wait on the device; the host's next one waits for room (measured by many on NVIDIA's drivers: 1,022
  /// to 1,024).
  static constexpr std::size_t kAhead = 1024;

  VirtualTime();
  ~VirtualTime();
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  /// When it runs: on its stream behind what is there, and behind events that the stream waits for. Of the host's
  /// waits: begin is when it begins to wait.
  Placed give(const Given& given);
  /// When the host is done with what it gave.
  [[nodiscard]] double host() const { return host_; }
  /// When all streams are.
  [[nodiscard]] double device() const { return device_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  double host_ = 0, device_ = 0;
};

}  // namespace shard::steptime
