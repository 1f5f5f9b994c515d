// What a calibration comes to: a cluster of this machine, and how well it predicts the steps that it was made from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "executor/commands/calibration_device.h"
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

/// Whose figures those are.
enum class CalibrationDevice : std::uint8_t { cpu, cuda, emulated_cuda };
[[nodiscard]] constexpr const char* to_string(CalibrationDevice device) {
  switch (device) {
    case CalibrationDevice::cpu: return "cpu";
    case CalibrationDevice::cuda: return "cuda";
    case CalibrationDevice::emulated_cuda: return "emulated-cuda";
  }
  return "?";
}

/// A cluster of this machine's GPUs: the laws of every number of ranks on one, and as general figures what it reached
/// one thing at a time. That of an emulated GPU says that its figures mean nothing.
[[nodiscard]] cluster::Cluster cluster_of(std::span<const OccupancySamples> samples, const Machine& machine,
                                          const DeviceFigures& device);

/// A training of the calibration, predicted with its result.
struct StepCheck {
  std::string model;
  std::string arguments;
  double predicted_seconds = 0;
  double measured_seconds = 0;
  [[nodiscard]] double error() const;  ///< relative, without sign
};

struct CalibrationResult {
  CalibrationDevice device = CalibrationDevice::cpu;
  cluster::Cluster cluster;
  std::vector<StepCheck> steps;
  double seconds = 0;     ///< that it took
  double busy_cores = 0;  ///< that others kept busy meanwhile
  int repetitions = 0;
  std::size_t left_out = 0;  ///< trainings that had no time
};

/// What four of five of its steps were nearer to their prediction than, at least a tenth, which days differ by.
[[nodiscard]] double likely_error(const CalibrationResult& result);

/// Keys: docs/json.md, "calibrate --json".
[[nodiscard]] nlohmann::ordered_json to_json(const CalibrationResult& result, const std::string& file);
[[nodiscard]] std::string to_text(const CalibrationResult& result, const std::string& file);

}  // namespace shard::commands
