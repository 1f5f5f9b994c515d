// Published runs beside what is predicted of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/validate/errors.h"
#include "sim/validate/predict.h"
#include "sim/validate/published_run.h"
#include "sim/validate/throughput.h"
#include "traces/base/result.h"

namespace shard::validate {

/// One row.
struct ValidatedRow {
  PublishedRun run;
  RunMachine machine;
  Predicted predicted;  ///< of memory
  std::optional<Throughput> throughput;
  std::string throughput_reason;  ///< why it is not predicted though it was measured
  /// Predicted and measured of each stated figure of memory, in the run's order.
  [[nodiscard]] std::optional<double> memory_error(std::size_t figure) const;
  [[nodiscard]] std::optional<double> throughput_error() const;
  /// Whether what was measured lies within the interval; none where one of the two is not there.
  [[nodiscard]] std::optional<bool> within() const;
};

struct Classified {
  std::int64_t count = 0;
  std::int64_t predicted = 0;
  std::int64_t right = 0;  ///< of those
};

/// How often the truth lay within the interval of what was predicted.
struct Within {
  std::int64_t rows = 0, within = 0;
};

struct Errors {
  std::string name;
  std::int64_t rows = 0;
  ErrorSummary peak_memory, throughput;
  Within intervals;
};

struct Unpredicted {
  NotPredicted reason{};
  std::int64_t rows = 0, with_memory = 0;
};

struct Validation {
  std::vector<ValidatedRow> rows;
  std::vector<Errors> frameworks, memory_kinds;
  /// Rows whose memory is not predicted, and of them those whose memory is known; what does not occur is left out.
  std::vector<Unpredicted> unpredicted;
  /// Measured figures of a stated kind; model states and kinds that are not stated stand in `memory_kinds` alone.
  Errors overall;
  /// Of the speeds of one kind: of 16 bits without tensor parallelism, ...; a row may be of several. Pipelines and
  /// launch-bound steps stand here alone.
  std::vector<Errors> speed_kinds;
  /// The median of the frameworks' median errors of speed, which no publisher of many rows decides.
  std::optional<double> median_of_medians;
  double modelled_fraction = 0;  ///< of the measured dense rows without pipelines and context parallelism
  Classified oom, fits;          ///< of these rows where the device's memory is known
};

/// The cluster of a name, read once.
using FindCluster = std::function<Result<cluster::Cluster>(std::string_view)>;

/// `progress` is told how many rows are done; may be empty.
[[nodiscard]] Validation validate_runs(std::vector<PublishedRun> runs, const FindCluster& find_cluster,
                                       const std::function<void(std::size_t)>& progress = {});

}  // namespace shard::validate
