// The shared time axis: what is visible, which time a pixel column covers, and how one moves about.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace shard::view {

/// Half-open: [begin_ns, end_ns).
struct TimeRange {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  [[nodiscard]] std::int64_t length_ns() const { return end_ns - begin_ns; }
  [[nodiscard]] bool empty() const { return end_ns <= begin_ns; }
  [[nodiscard]] bool contains(std::int64_t time_ns) const { return begin_ns <= time_ns && time_ns < end_ns; }
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

/// A time range cut into `width` pixel columns. Column c covers [begin(c), end(c)); the cuts are whole nanoseconds,
/// begin_ns + floor(c * length / width), so that sums over columns are exact. Where there are more columns than
/// nanoseconds a column still covers one, which its neighbours then cover too. `cuts`, where there are any, are other
/// places to cut: width + 1 times, never falling, from the begin of the range to its end.
struct PixelRange {
  TimeRange time{};
  std::int32_t width = 0;
  std::shared_ptr<const std::vector<std::int64_t>> cuts{};

  /// Also for c = width: the end of the range.
  [[nodiscard]] std::int64_t begin(std::int32_t column) const;
  [[nodiscard]] std::int64_t end(std::int32_t column) const;
  /// The first column that covers a time, held to [0, width - 1].
  [[nodiscard]] std::int32_t column_of(std::int64_t time_ns) const;
};

/// What is visible, finely enough to zoom in and out again without drift: doubles relative to `origin_ns`, which stays
/// (the begin of the document), so that times of day in nanoseconds keep their last digit.
struct Camera {
  std::int64_t origin_ns = 0;
  double begin_ns = 0;     ///< relative to the origin
  double length_ns = 1e9;  ///< > 0

  friend bool operator==(const Camera&, const Camera&) = default;
};

/// Zooming stops here: some tens of pixels a nanosecond, and sixty years.
inline constexpr double kShortestViewNs = 16;
inline constexpr double kLongestViewNs = 2e18;

/// The visible range in whole nanoseconds, never empty.
[[nodiscard]] TimeRange visible(const Camera& camera);
[[nodiscard]] PixelRange pixels(const Camera& camera, std::int32_t width);

/// Position of a time, in pixels from the left edge of a pane `width` pixels wide; outside the pane too.
[[nodiscard]] double x_of(const Camera& camera, std::int64_t time_ns, double width);
/// The time under a position, rounded down.
[[nodiscard]] std::int64_t time_at(const Camera& camera, double x, double width);

/// Multiplies the visible length by `factor` (< 1 zooms in); the time under `x` stays where it is.
[[nodiscard]] Camera zoom(const Camera& camera, double factor, double x, double width);
/// Moves the picture by `dx` pixels: positive shows earlier times, as a drag to the right does.
[[nodiscard]] Camera pan(const Camera& camera, double dx, double width);
/// Shows the whole range, with `margin` (a share of its length) free at both ends. An empty range is shown 1 us wide.
[[nodiscard]] Camera fit(std::int64_t origin_ns, TimeRange range, double margin = 0.02);
/// Keeps the length and puts a time in the middle.
[[nodiscard]] Camera center(const Camera& camera, std::int64_t time_ns);
/// Moves the picture no further out than half a view beyond the range, and shows at most 4 times its length.
[[nodiscard]] Camera keep_near(const Camera& camera, TimeRange range);

}  // namespace shard::view
