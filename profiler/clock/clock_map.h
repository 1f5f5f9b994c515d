// Puts moments of a device's clock on the host's, and says how far off they can be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shard::profiler {

/// One look at both clocks: the host's was read before and behind the device's.
struct ClockLook {
  std::int64_t device_ns = 0;
  std::int64_t host_before_ns = 0;
  std::int64_t host_behind_ns = 0;

  friend bool operator==(const ClockLook&, const ClockLook&) = default;
};

/// A moment of the host's clock, and how far from it the truth can be.
struct HostTime {
  std::int64_t time_ns = 0;
  std::int64_t bound_ns = 0;
};

/// Straight lines between looks that follow each other. What is assumed of the device's clock: between two looks, how
/// far it is from the host's lies between what it was at either. That holds for a clock that drifts and for one that
/// was set once, forward or back; then no moment between them is off by more than the two distances differ, and the
/// reading of the looks adds half its own duration. Beyond the first and the last look nothing bounds it: the bound
/// there grows with the time to the look by the worst drift that was seen.
class ClockMap {
 public:
  /// Looks in the order in which they were taken. Without any, times stay as they are and nothing bounds them.
  explicit ClockMap(std::span<const ClockLook> looks);

  /// Where several stretches of the host's time show this moment of a device's clock that was set back, the first;
  /// the bound covers them all. Moments keep their order where it was not.
  [[nodiscard]] HostTime host(std::int64_t device_ns) const;
  [[nodiscard]] bool is_known() const { return !points_.empty(); }
  /// Of all moments between the first look and the last.
  [[nodiscard]] std::int64_t bound_ns() const { return bound_ns_; }

 private:
  struct Point {
    std::int64_t device_ns = 0;
    std::int64_t host_ns = 0;  ///< the middle
    std::int64_t half_ns = 0;  ///< of the interval, rounded up
  };
  [[nodiscard]] static HostTime between(const Point& a, const Point& b, std::int64_t device_ns);
  [[nodiscard]] HostTime beyond(const Point& point, std::int64_t device_ns) const;

  std::vector<Point> points_;
  /// Between a look and the next, by the earlier device time of both.
  struct Stretch {
    std::int64_t low = 0;
    std::int64_t high_so_far = 0;  ///< of this and of those before it
    std::size_t first = 0;         ///< point; the other one follows
  };
  std::vector<Stretch> stretches_;
  Point earliest_{}, latest_{};  ///< by the device's clock
  std::int64_t bound_ns_ = 0;
  double worst_drift_ = 0;
};

}  // namespace shard::profiler
