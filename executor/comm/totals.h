// Calls and bytes per kind of collective, counted by the communicator itself: a witness independent of the plan.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard {

struct CollectiveCount {
  std::int64_t calls = 0;
  Bytes bytes{0};  ///< the full buffers of all calls, padding included
  friend bool operator==(const CollectiveCount&, const CollectiveCount&) = default;
};

/// Index with `totals[Collective::all_gather]`.
struct CollectiveTotals {
  std::array<CollectiveCount, kCollectiveCount> by_kind{};
  /// What this rank sent to others for all of them, where that is not the communicator's to choose: over NCCL. As the
  /// calls were made of messages, else as a ring sends it.
  Bytes wire{0};
  [[nodiscard]] CollectiveCount& operator[](Collective kind) { return by_kind[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const CollectiveCount& operator[](Collective kind) const {
    return by_kind[static_cast<std::size_t>(kind)];
  }
  /// What came after `earlier`.
  [[nodiscard]] CollectiveTotals operator-(const CollectiveTotals& earlier) const {
    CollectiveTotals later = *this;
    for (std::size_t k = 0; k < by_kind.size(); ++k) {
      later.by_kind[k].calls -= earlier.by_kind[k].calls;
      later.by_kind[k].bytes -= earlier.by_kind[k].bytes;
    }
    later.wire -= earlier.wire;
    return later;
  }
  CollectiveTotals& operator+=(const CollectiveTotals& more) {
    for (std::size_t k = 0; k < by_kind.size(); ++k) {
      by_kind[k].calls += more.by_kind[k].calls;
      by_kind[k].bytes += more.by_kind[k].bytes;
    }
    wire += more.wire;
    return *this;
  }
  /// Of what a plan says: the calls.
  friend bool operator==(const CollectiveTotals& a, const CollectiveTotals& b) { return a.by_kind == b.by_kind; }
};

}  // namespace shard
