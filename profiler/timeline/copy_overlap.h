// How much of a device's copying went on while it computed.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/profile.h"

namespace shard::profiler {

/// Moments in which a copy or a fill ran, each counted once.
struct CopyOverlap {
  DevicePlace place;
  std::int64_t copy_ns = 0;
  std::int64_t hidden_ns = 0;  ///< of these, while a kernel ran that is no collective

  [[nodiscard]] std::int64_t exposed_ns() const { return copy_ns - hidden_ns; }
  friend bool operator==(const CopyOverlap&, const CopyOverlap&) = default;
};

/// Of devices that copied anything, by place.
[[nodiscard]] std::vector<CopyOverlap> copy_overlap(const Trace& trace);

}  // namespace shard::profiler
