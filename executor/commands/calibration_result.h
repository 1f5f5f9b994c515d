// What a calibration comes to: a cluster of this machine, and how well it predicts the steps that it was made from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/cost/fit.h"

namespace shard::commands {

/// Everything that was seen with so many ranks of so many threads at once.
struct OccupancySamples {
  std::int32_t ranks = 1;
  std::int32_t threads = 1;
  std::vector<cost::OpSample> ops;
  std::vector<cost::StepSample> steps;
};

/// The machine that was measured, for words.
struct Machine {
  std::string processor;
  std::int32_t cores = 1;
  std::string date;
};

/// A cpu cluster: the laws of every occupancy, and as its general figures, which price what has no law, the best that
/// was reached by products, attention, optimizer steps and gathers with all cores busy.
[[nodiscard]] cluster::Cluster cluster_of(std::span<const OccupancySamples> samples, const Machine& machine);

/// A training of the calibration, predicted with its result.
struct StepCheck {
  std::string model;
  std::string arguments;
  double predicted_seconds = 0;
  double measured_seconds = 0;
  [[nodiscard]] double error() const;  ///< relative, without sign
};

struct CalibrationResult {
  cluster::Cluster cluster;
  std::vector<StepCheck> steps;
  double seconds = 0;  ///< that it took
  int repetitions = 0;
  std::size_t left_out = 0;  ///< trainings that had no time
};

/// Keys: see README, "calibrate --json".
[[nodiscard]] nlohmann::ordered_json to_json(const CalibrationResult& result, const std::string& file);
[[nodiscard]] std::string to_text(const CalibrationResult& result, const std::string& file);

}  // namespace shard::commands
