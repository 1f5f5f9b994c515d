// Lines two memory snapshots up: what a program was predicted to take beside what it took.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "traces/compare.h"
#include "traces/import/import.h"

namespace shard {

/// A run of allocations and frees that both have in the same order, in blocks of the same size.
struct CommonRun {
  Pair<std::int64_t> begin;  ///< among the allocations and frees of each
  std::int64_t count = 0;
};

struct SnapshotComparison {
  Pair<std::string> label;  ///< the files
  Pair<std::int64_t> peak_allocated_bytes, peak_reserved_bytes;
  Pair<std::vector<std::int64_t>> at_peak;  ///< by category
  Pair<std::int64_t> events;                ///< allocations and frees
  std::vector<CommonRun> runs;         ///< in order, of at least kShortest events, or of all of a shorter recording
  std::int64_t common_events = 0;      ///< in all runs
  Pair<std::int64_t> differing_bytes;  ///< allocated outside of the runs, between the first and the last of them
  Pair<std::string> first_difference;  ///< behind the first run: what each did there; empty at the end of one

  static constexpr std::int64_t kShortest = 8;
  [[nodiscard]] bool equal() const { return peak_allocated_bytes.equal() && peak_reserved_bytes.equal(); }
};

/// Of the device with the most events of each. Fails with Errc::contradiction where one is no memory snapshot. Blocks
/// are of one size if they are after rounding up to 512 bytes, the allocator's unit. The longest run is found first,
/// then the longest before and behind it, and so on.
[[nodiscard]] Result<SnapshotComparison> compare_snapshots(const LoadedTrace& a, const LoadedTrace& b,
                                                           const std::string& name_a, const std::string& name_b);

[[nodiscard]] nlohmann::ordered_json to_json(const SnapshotComparison& comparison);
[[nodiscard]] std::string to_text(const SnapshotComparison& comparison);

}  // namespace shard
