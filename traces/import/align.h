// Puts the clock of one recording on another's by what both took part in: a collective ends on no rank before it has
// begun on all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/reader.h"

namespace shard {

/// What to add to the times of a recording: straight lines between moments of its own clock, the ends' beyond them.
/// Times keep their order.
class ClockShift {
 public:
  struct Point {
    std::int64_t time_ns = 0;
    std::int64_t shift_ns = 0;
  };
  ClockShift() : ClockShift(0) {}
  explicit ClockShift(std::int64_t shift_ns) : points_{{0, shift_ns}} {}
  /// At least one, by time.
  explicit ClockShift(std::vector<Point> points) : points_(std::move(points)) {}

  /// The moment on the other clock.
  [[nodiscard]] std::int64_t moved(std::int64_t time_ns) const;
  /// And so much more.
  [[nodiscard]] ClockShift and_then(std::int64_t shift_ns) const {
    ClockShift sum = *this;
    for (Point& point : sum.points_) point.shift_ns += shift_ns;
    return sum;
  }

 private:
  std::vector<Point> points_;
};

struct Alignment {
  ClockShift shift{};
  std::int64_t bound_ns = 0;    ///< no moment of the recording is off by more
  std::size_t collectives = 0;  ///< that both took part in
  bool clock_agrees = false;    ///< what the clocks themselves say is possible, and was taken
  /// They are the same ones for certain: of ops that a plan names, or of numbered steps. Else both have equally many of
  /// each kind, and are taken for recordings of the same stretch.
  bool certain = false;
};

/// What is assumed of two clocks: that they drift apart by at most one in 5,000.
inline constexpr double kMostDrift = 2e-4;

/// What `by_clock` says where the collectives leave that possible throughout: recordings of one host share a clock.
/// Else the middle of what they leave, from moment to moment. They are all-reduces, all-gathers, reduce-scatters,
/// all-to-alls and barriers, each of all ranks of both recordings. Nothing where they do not say, and `why` not: none
/// that both have, several groups of ranks in one recording, or no clock that drifts so little could have shown them
/// so.
[[nodiscard]] std::optional<Alignment> align_by_collectives(const Trace& axis, const Trace& other,
                                                            std::optional<std::int64_t> by_clock, std::string& why);

}  // namespace shard
