// `dryrun --routings`: what the peak is over several draws of the experts that tokens go to.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiler/commands/dryrun_report.h"

namespace shard::dryrun {

/// Peaks of the rank that took most, in the order of the draws.
class RoutingDraws {
 public:
  void add(const DryRuns& runs);
  [[nodiscard]] bool is_largest_last() const;
  [[nodiscard]] bool empty() const { return allocated_.empty(); }

  /// {"draws", "peak_allocated_bytes": {"least", "median", "largest"}, "peak_reserved_bytes": likewise,
  /// "each_peak_allocated_bytes": [...]}
  [[nodiscard]] nlohmann::ordered_json json() const;
  /// A paragraph; `routing`: what holds on average, as --routing says.
  [[nodiscard]] std::string text(const std::string& routing) const;

 private:
  std::vector<std::int64_t> allocated_, reserved_;
};

}  // namespace shard::dryrun
