// How many of PyTorch's allocations lie before a moment of the program, in terms of those that a recording has.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "traces/snapshot.h"

namespace shard::dryrun {

/// Of one device. Counts are lists by device, as python/phases.py takes them from PyTorch; a GPU that was not used yet
/// has none. They are related to the recording from its end, since of a long one the first events are gone.
class AllocationCounts {
 public:
  /// `at_end`: when the recording was written.
  AllocationCounts(const nlohmann::json& at_end, const Snapshot& snapshot, std::int32_t device);

  [[nodiscard]] std::int32_t device() const { return device_; }
  /// The device's of a list.
  [[nodiscard]] std::int64_t of(const nlohmann::json& counts) const;
  /// Of the recorded ones, how many there were when PyTorch had counted so many; less than none: before them.
  [[nodiscard]] std::int64_t recorded_before(const nlohmann::json& counts) const { return of(counts) - gone(); }
  [[nodiscard]] std::int64_t recorded() const { return recorded_; }            ///< those that are events
  [[nodiscard]] std::int64_t live_at_start() const { return live_at_start_; }  ///< blocks that were there before
  [[nodiscard]] std::int64_t gone() const { return at_end_ - recorded_; }      ///< before the first that is recorded
  /// Not where somebody has set PyTorch's counters to zero.
  [[nodiscard]] bool fit() const { return gone() >= 0; }

 private:
  std::int32_t device_;
  std::int64_t at_end_ = 0, recorded_ = 0, live_at_start_ = 0;
};

}  // namespace shard::dryrun
