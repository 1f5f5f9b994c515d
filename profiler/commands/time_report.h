// How long a step takes, of each rank that ran dry: as text and as JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "profiler/commands/dryrun_report.h"
#include "profiler/steptime/forecast.h"
#include "sim/cluster/cluster.h"

namespace shard::dryrun {

/// A rank's, or why there is none.
struct RankTime {
  std::optional<steptime::Forecast> forecast;
  std::string none;
  std::optional<Error> error;  ///< of the forecast
};

/// By rank. The run's folder has its files. `recorded`: of a real run, in place of laws; may be nullptr.
[[nodiscard]] std::map<int, RankTime> times_of(const DryRuns& runs, const Place& place, const cluster::Cluster& cluster,
                                               const steptime::Recorded* recorded);

/// The rank whose step takes longest; nullptr: nobody's is known.
[[nodiscard]] const steptime::Forecast* slowest(const std::map<int, RankTime>& times);

[[nodiscard]] int slowest_rank(const std::map<int, RankTime>& times);

/// Where a recording was to stand in for laws, and has nothing of any rank's step.
[[nodiscard]] std::optional<Error> recording_fault(const std::map<int, RankTime>& times, const std::string& recording);

/// "step 412 ms (360 to 480)", what of it goes where, how much of it has a law, and what has none.
[[nodiscard]] std::string to_text(const std::map<int, RankTime>& times);

/// {"seconds", "low", "high", "coverage", "recorded", "recorded_by", "not_recorded", "rank", "step", "kernels",
/// "exchanges", "parts", "not_known", "by_rank"}, or null; and why not.
void add_times(nlohmann::ordered_json& j, const std::map<int, RankTime>& times);

}  // namespace shard::dryrun
