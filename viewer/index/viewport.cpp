// Whole nanoseconds for what is summed, doubles for what moves.
#include "viewer/index/viewport.h"

#include <algorithm>
#include <cmath>

namespace shard::view {
namespace {

/// Beyond any time of a trace (FORMAT.md T9: 2^61), so that sums of two stay within 64 bits.
constexpr double kFarthest = 4.6e18;

std::int64_t whole(double value) {
  return static_cast<std::int64_t>(std::clamp(value, -kFarthest, kFarthest));
}

}  // namespace

std::int64_t PixelRange::begin(std::int32_t column) const {
  if (cuts) return (*cuts)[static_cast<std::size_t>(column)];
  const std::int64_t length = std::max<std::int64_t>(time.length_ns(), 0);
  const std::int64_t each = length / width, rest = length % width;
  return time.begin_ns + column * each + column * rest / width;
}

std::int64_t PixelRange::end(std::int32_t column) const {
  return std::max(begin(column) + 1, begin(column + 1));
}

std::int32_t PixelRange::column_of(std::int64_t time_ns) const {
  if (time_ns < time.begin_ns) return 0;
  if (time_ns >= time.end_ns) return width - 1;
  if (cuts) {  // the first that ends behind it
    const auto next = std::upper_bound(cuts->begin() + 1, cuts->end() - 1, time_ns);
    return static_cast<std::int32_t>(next - cuts->begin()) - 1;
  }
  const double share = static_cast<double>(time_ns - time.begin_ns) / static_cast<double>(time.length_ns());
  auto column = std::clamp(static_cast<std::int32_t>(share * width), 0, width - 1);
  while (column > 0 && end(column - 1) > time_ns) --column;
  while (column < width - 1 && end(column) <= time_ns) ++column;
  return column;
}

TimeRange visible(const Camera& camera) {
  const std::int64_t begin = camera.origin_ns + whole(std::floor(camera.begin_ns));
  const std::int64_t length = std::max<std::int64_t>(1, whole(std::round(camera.length_ns)));
  return {begin, begin + length};
}

PixelRange pixels(const Camera& camera, std::int32_t width) {
  return {visible(camera), std::max(width, 1), nullptr};
}

double x_of(const Camera& camera, std::int64_t time_ns, double width) {
  return (static_cast<double>(time_ns - camera.origin_ns) - camera.begin_ns) / camera.length_ns * width;
}

std::int64_t time_at(const Camera& camera, double x, double width) {
  return camera.origin_ns + whole(std::floor(camera.begin_ns + x / width * camera.length_ns));
}

Camera zoom(const Camera& camera, double factor, double x, double width) {
  Camera result = camera;
  result.length_ns = std::clamp(camera.length_ns * factor, kShortestViewNs, kLongestViewNs);
  result.begin_ns = camera.begin_ns + x / width * (camera.length_ns - result.length_ns);
  return result;
}

Camera pan(const Camera& camera, double dx, double width) {
  Camera result = camera;
  result.begin_ns -= dx / width * camera.length_ns;
  return result;
}

Camera fit(std::int64_t origin_ns, TimeRange range, double margin) {
  double begin = static_cast<double>(range.begin_ns - origin_ns);
  double length = static_cast<double>(range.length_ns());
  if (range.empty()) {
    begin -= 500;
    length = 1000;
    margin = 0;
  }
  Camera camera{origin_ns, begin - margin * length, length * (1 + 2 * margin)};
  if (camera.length_ns < kShortestViewNs) {
    camera.begin_ns -= (kShortestViewNs - camera.length_ns) / 2;
    camera.length_ns = kShortestViewNs;
  }
  return camera;
}

Camera center(const Camera& camera, std::int64_t time_ns) {
  Camera result = camera;
  result.begin_ns = static_cast<double>(time_ns - camera.origin_ns) - camera.length_ns / 2;
  return result;
}

Camera keep_near(const Camera& camera, TimeRange range) {
  const double begin = static_cast<double>(range.begin_ns - camera.origin_ns);
  const double length = std::max(static_cast<double>(range.length_ns()), kShortestViewNs);
  Camera result = camera;
  if (result.length_ns > 4 * length) {
    result.begin_ns += (result.length_ns - 4 * length) / 2;
    result.length_ns = 4 * length;
  }
  const double half = result.length_ns / 2;
  result.begin_ns = std::clamp(result.begin_ns, begin - half, std::max(begin - half, begin + length - half));
  return result;
}

}  // namespace shard::view
