// Where the time went: a pure function of a trace's spans. Busy and idle devices, collectives exposed and hidden,
// kernels, operations of the host, copies, steps.
//
// What a span is its `activity` says (Span); of producers that say none, its track does: what runs on a stream of a
// device is a kernel, on the communication stream a collective, on those for copies a copy; names of NCCL's kernels and
// CUDA's copies tell these apart where no stream does. Time is counted once: a moment of a
// host thread belongs to the span begun last of those that run, so that of nested ones each has what its children
// leave, and of those that overlap on a device a busy moment is one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/reader.h"

namespace shard {

/// Where work runs: a device of a rank. `device` is the number that a recorder gives it ("GPU 3"), invalid where there
/// is none: our own traces have one device a rank.
using DeviceNumber = Id<struct DeviceNumberTag>;
struct DevicePlace {
  Rank rank{};
  DeviceNumber device{};

  friend auto operator<=>(const DevicePlace&, const DevicePlace&) = default;
};

/// The number in a track's name, as importers call the queues of a device ("GPU 3 stream 7").
[[nodiscard]] DeviceNumber device_of(const Track& track);

/// Moments of a device within a window, each counted once.
struct DeviceTime {
  std::int64_t window_ns = 0;
  std::int64_t busy_ns = 0;           ///< a kernel, a collective, a copy or a fill runs
  std::int64_t idle_ns = 0;           ///< none does: window less busy
  std::int64_t kernel_ns = 0;         ///< a kernel runs that is no collective
  std::int64_t copy_ns = 0;           ///< a copy or a fill runs
  std::int64_t communication_ns = 0;  ///< a collective runs ...
  std::int64_t hidden_ns = 0;         ///< ... and a kernel that is none beside it
  std::int64_t exposed_ns = 0;        ///< ... and none does

  friend bool operator==(const DeviceTime&, const DeviceTime&) = default;
};

/// The window is from the first begin to the last end of the rank's spans.
struct DeviceUse {
  DevicePlace place;
  std::int64_t streams = 0;  ///< queues in which something ran
  DeviceTime time;
  /// Of the idle time, what lies between the device's first and last work: the rest is before and after it.
  std::int64_t idle_between_ns = 0;

  friend bool operator==(const DeviceUse&, const DeviceUse&) = default;
};

/// Calls of one kind of collective. Their times are sums over calls: two that overlap count twice.
struct CollectiveUse {
  DevicePlace place;
  Activity kind = Activity::other_collective;
  bool on_host = false;  ///< by gloo or MPI: nothing is said of what hides it
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  std::int64_t without_bytes = 0;  ///< calls of which the trace says no bytes
  std::int64_t total_ns = 0;
  std::int64_t hidden_ns = 0;   ///< while a kernel that is no collective runs on the device
  std::int64_t exposed_ns = 0;  ///< the rest

  friend bool operator==(const CollectiveUse&, const CollectiveUse&) = default;
};

/// Spans of one name.
struct NamedTime {
  std::string name{};
  Activity activity = Activity::unknown;  ///< of kernels: kernel, or other_collective whatever the kind
  std::int64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;  ///< while nothing begun later runs on its thread; of kernels the total

  friend bool operator==(const NamedTime&, const NamedTime&) = default;
};

enum class Direction : std::uint8_t { to_device, to_host, within_device, between_devices, on_host, fill, unknown };
[[nodiscard]] constexpr const char* to_string(Direction direction) {
  switch (direction) {
    case Direction::to_device: return "host_to_device";
    case Direction::to_host: return "device_to_host";
    case Direction::within_device: return "device_to_device";
    case Direction::between_devices: return "between_devices";
    case Direction::on_host: return "host_to_host";
    case Direction::fill: return "fill";
    case Direction::unknown: return "not_known";
  }
  return "?";
}
inline constexpr int kDirectionCount = 7;

struct CopyUse {
  DevicePlace place;
  Direction direction = Direction::unknown;
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  std::int64_t total_ns = 0;

  friend bool operator==(const CopyUse&, const CopyUse&) = default;
};

/// A step on a device: as the script marked it on the host (ProfilerStep#N), else from the first begin to the last end
/// of its spans.
struct DeviceStep {
  DevicePlace place;
  std::int32_t step = 0;
  std::int64_t begin_ns = 0;
  DeviceTime time;

  friend bool operator==(const DeviceStep&, const DeviceStep&) = default;
};

struct Profile {
  std::vector<DeviceUse> devices;          ///< by place
  std::vector<CollectiveUse> collectives;  ///< by place and kind
  std::vector<NamedTime> kernels;          ///< collectives among them; the longest first
  std::vector<NamedTime> operations;       ///< of the host, by self time, the longest first
  std::vector<CopyUse> copies;             ///< by place and direction
  std::vector<DeviceStep> steps;           ///< by step and place; at most 200,000

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// Of one rank, or of all. O(n log n) in the spans.
[[nodiscard]] Profile profile(const Trace& trace, std::optional<Rank> rank = {});

/// What a span is, by its activity, else by its track and name.
[[nodiscard]] Activity activity_of(const Track& track, Activity said, std::string_view name);

/// Ranks of which the trace holds anything, in order.
[[nodiscard]] std::vector<Rank> ranks_of(const Trace& trace);

/// Steps that a script marked ("ProfilerStep#12"), by rank and begin.
struct MarkedStep {
  Rank rank{};
  std::int32_t step = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
};
[[nodiscard]] std::vector<MarkedStep> marked_steps(const Trace& trace);

}  // namespace shard
