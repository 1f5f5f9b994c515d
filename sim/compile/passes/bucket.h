// Which units' gradients are reduced in one call: a bucket of at most so many bytes, flushed when the next does not
// fit.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/target/comm_workspace.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::plan {

class Bucket {
 public:
  using Call = std::vector<UnitId>;

  /// `limit` 0: every unit by itself.
  explicit Bucket(Bytes limit) : limit_(limit) {}

  /// A unit's gradient is complete: the calls to make now. One as large as the bucket goes at once and alone; what
  /// waits goes when the unit does not fit beside it, or when it fills the bucket.
  [[nodiscard]] std::vector<Call> add(UnitId unit, Bytes bytes, std::size_t segments) {
    if (bytes >= limit_) return {{unit}};
    std::vector<Call> calls;
    if (bytes_ + bytes > limit_ || segments_ + segments > kCallSegments) calls.push_back(rest());
    waiting_.push_back(unit);
    bytes_ += bytes;
    segments_ += segments;
    if (bytes_ == limit_) calls.push_back(rest());
    return calls;
  }

  /// What still waits, to be reduced in one call; may be empty. Leaves the bucket empty.
  [[nodiscard]] Call rest() {
    bytes_ = Bytes{0};
    segments_ = 0;
    return std::exchange(waiting_, {});
  }

 private:
  Bytes limit_;
  Bytes bytes_{0};
  std::size_t segments_ = 0;
  Call waiting_;
};

}  // namespace shard::plan
