// Where a run's time went, and which of its ops took longer or shorter than was predicted.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "executor/profile/add_records.h"
#include "sim/cluster/cluster.h"
#include "traces/base/result.h"
#include "traces/compare.h"
#include "traces/profile.h"

namespace shard::commands {

struct Prepared;
struct TrainOptions;

/// How much of a rank's steps lies in spans.
struct Coverage {
  Rank rank{};
  std::int64_t step_ns = 0;     ///< of all its steps
  std::int64_t covered_ns = 0;  ///< of these, in which at least one op ran
  std::int64_t named_ns = 0;    ///< of these, in which an op ran or the rank's thread said what it did
};

struct RunProfile {
  std::string trace;
  Profile profile;
  Comparison comparison;           ///< prediction and run
  std::vector<Coverage> coverage;  ///< by rank
  std::optional<device_profile::DeviceRecords>
      records{};                   ///< of rank 0's process; none on CPUs, and where they are missing
  std::string why_not_recorded{};  ///< a sentence, where they are missing
};

/// Reads the trace that the run has written, and predicts the run again op by op.
[[nodiscard]] Result<RunProfile> profile_of_run(const Prepared& prepared, const TrainOptions& options,
                                                const cluster::Cluster& cluster);

/// The simulator's trace of the same plan. Errors: as Writer.
[[nodiscard]] Result<void> write_prediction(const Prepared& prepared, const cluster::Cluster& cluster,
                                            const TrainOptions& options, const std::string& path);

/// {"trace", "coverage": [{"rank", "step_seconds", "covered_seconds", "named_seconds"}], as profile_report.h's,
/// "residuals": [{"rank", "op", "name", "stream", "predicted_seconds", "measured_seconds", "waiting_seconds"}],
/// "records": null or {"device_spans", "device_spans_with_op", "device_spans_without_call", "dropped_events",
/// "clock_bound_seconds", "idle": [...], "allocations": [{"rank", "memory", "count", "peak_bytes", "largest_bytes"}]},
/// "why_not_recorded"}.
[[nodiscard]] nlohmann::ordered_json to_json(const RunProfile& profile);
[[nodiscard]] std::string to_text(const RunProfile& profile);

}  // namespace shard::commands
