// Counts of a list and of a recording's events.
#include "profiler/dryrun/allocation_counts.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

namespace shard::dryrun {

AllocationCounts::AllocationCounts(const nlohmann::json& at_end, const Snapshot& snapshot, std::int32_t device)
    : device_(device), at_end_(of(at_end)) {
  recorded_ = std::ranges::count_if(snapshot.events, [&](const SnapshotEvent& event) {
    return event.device == device && event.action == SnapshotAction::alloc;
  });
  live_at_start_ = std::ranges::count(snapshot.at_start.blocks, device, &Snapshot::Start::Live::device);
}

std::int64_t AllocationCounts::of(const nlohmann::json& counts) const {
  const auto at = static_cast<std::size_t>(device_);
  return counts.is_array() && at < counts.size() && counts[at].is_number_integer() ? counts[at].get<std::int64_t>() : 0;
}

}  // namespace shard::dryrun
