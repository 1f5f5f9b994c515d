// Interpolation, and its error told from the looks themselves.
#include "profiler/clock/clock_map.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace shard::profiler {
namespace {

/// Crystals: what a clock drifts where nothing was seen of it.
constexpr double kUsualDrift = 1e-4;

/// Of times beyond any that a clock has: two differ by 2^61 at most, and results stay within 2^62.
std::int64_t clamped(std::int64_t value) {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 60;
  return std::clamp(value, -kFarthest, kFarthest);
}

/// A bound that says nothing any more. Two of them have a sum.
constexpr std::int64_t kWidest = (std::int64_t{1} << 62) - 1;

/// Of two bounds from 0 to kWidest.
std::int64_t both(std::int64_t a, std::int64_t b) {
  return std::min(a + b, kWidest);
}

}  // namespace

ClockMap::ClockMap(std::span<const ClockLook> looks) : worst_drift_(kUsualDrift) {
  points_.reserve(looks.size());
  for (const ClockLook& look : looks) {
    const std::int64_t before = clamped(look.host_before_ns);
    const std::int64_t behind = std::max(before, clamped(look.host_behind_ns));
    // Two looks at once, by two threads: which was first cannot be told, and one says enough.
    if (!points_.empty() && before < points_.back().host_ns + points_.back().half_ns) continue;
    points_.push_back({clamped(look.device_ns), before + (behind - before) / 2, (behind - before + 1) / 2});
  }
  if (points_.empty()) return;
  std::int64_t set_back = 0;
  bound_ns_ = points_.front().half_ns;
  for (std::size_t i = 0; i + 1 < points_.size(); ++i) {
    const Point& a = points_[i];
    const Point& b = points_[i + 1];
    const std::int64_t device = b.device_ns - a.device_ns, host = b.host_ns - a.host_ns;
    const std::int64_t apart = std::abs(device - host);
    bound_ns_ = std::max(bound_ns_, apart + std::max(a.half_ns, b.half_ns) + 1);
    if (host > 0)
      worst_drift_ = std::max(worst_drift_, std::min(1.0, static_cast<double>(apart) / static_cast<double>(host)));
    if (device < 0) set_back = both(set_back, -device);
    // A clock that is set back shortly before a look has shown moments that lie behind it.
    stretches_.push_back({std::min(a.device_ns, b.device_ns) - apart, std::max(a.device_ns, b.device_ns) + apart, i});
  }
  // A moment that two stretches show, or several where the clock was set back: their estimates differ, too.
  if (!stretches_.empty()) bound_ns_ = both(3 * std::min(bound_ns_, kWidest / 3), set_back);
  std::stable_sort(stretches_.begin(), stretches_.end(),
                   [](const Stretch& a, const Stretch& b) { return a.low < b.low; });
  for (std::size_t i = 1; i < stretches_.size(); ++i)
    stretches_[i].high_so_far = std::max(stretches_[i].high_so_far, stretches_[i - 1].high_so_far);
  const auto by_device = [](const Point& a, const Point& b) { return a.device_ns < b.device_ns; };
  earliest_ = *std::min_element(points_.begin(), points_.end(), by_device);
  latest_ = *std::max_element(points_.begin(), points_.end(), by_device);
}

HostTime ClockMap::between(const Point& a, const Point& b, std::int64_t device_ns) {
  const std::int64_t device = b.device_ns - a.device_ns, host = b.host_ns - a.host_ns;
  const double part = device == 0 ? 0 : static_cast<double>(device_ns - a.device_ns) / static_cast<double>(device);
  const auto time =
      a.host_ns + static_cast<std::int64_t>(std::llround(std::clamp(part, 0.0, 1.0) * static_cast<double>(host)));
  return {time, std::abs(device - host) + std::max(a.half_ns, b.half_ns) + 1};
}

HostTime ClockMap::beyond(const Point& point, std::int64_t device_ns) const {
  const std::int64_t distance = device_ns - point.device_ns;
  const auto drift = static_cast<std::int64_t>(std::ceil(worst_drift_ * std::abs(static_cast<double>(distance))));
  return {point.host_ns + distance, both(bound_ns_, drift)};
}

HostTime ClockMap::host(std::int64_t device_ns) const {
  device_ns = clamped(device_ns);
  if (points_.empty()) return {device_ns, 0};
  if (device_ns < earliest_.device_ns) return beyond(earliest_, device_ns);
  if (device_ns > latest_.device_ns || stretches_.empty()) return beyond(latest_, device_ns);
  const auto behind = std::upper_bound(stretches_.begin(), stretches_.end(), device_ns,
                                       [](std::int64_t time, const Stretch& s) { return time < s.low; });
  HostTime chosen{};
  std::int64_t low = 0, high = 0;
  bool any = false, within = false;
  for (auto at = behind; at != stretches_.begin() && std::prev(at)->high_so_far >= device_ns; --at) {
    const Point& a = points_[std::prev(at)->first];
    const Point& b = points_[std::prev(at)->first + 1];
    const std::int64_t apart = std::abs((b.device_ns - a.device_ns) - (b.host_ns - a.host_ns));
    if (std::max(a.device_ns, b.device_ns) + apart < device_ns) continue;
    const HostTime found = between(a, b, device_ns);
    low = any ? std::min(low, found.time_ns - found.bound_ns) : found.time_ns - found.bound_ns;
    high = any ? std::max(high, found.time_ns + found.bound_ns) : found.time_ns + found.bound_ns;
    // The lines between looks meet, so that times keep their order where the clock was not set back; what lies only
    // near a stretch widens the bound.
    const bool is_within =
        std::min(a.device_ns, b.device_ns) <= device_ns && device_ns <= std::max(a.device_ns, b.device_ns);
    if (!any || (is_within && !within) || (is_within == within && found.time_ns < chosen.time_ns)) chosen = found;
    any = true;
    within = within || is_within;
  }
  return {chosen.time_ns, std::min(std::max(chosen.time_ns - low, high - chosen.time_ns), kWidest)};
}

}  // namespace shard::profiler
