// The trainings that a calibration runs: shapes and strategies that between them have every kind of op in many sizes.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace shard::commands {

/// One training of some steps, as `shardscope train` is asked for it.
struct CalibrationCase {
  std::string model;                   ///< a key of calibration_models()
  std::vector<std::string> arguments;  ///< ranks and threads among them
  int ranks = 1;
  int threads = 1;
  bool serial = true;   ///< a step is the sum of its ops: nothing goes on beside them
  bool graphs = false;  ///< steps are launched as graphs, unless they are traced: they are timed in a run of its own
};

struct CalibrationModel {
  std::string name;
  std::string config;  ///< the text of its config.json
};
[[nodiscard]] std::span<const CalibrationModel> calibration_models();

/// For one rank by itself; for as many ranks as cores, where this program can start ranks; and for one rank with as
/// many threads. Neighbours in the list are of different occupancies, so that a disturbance meets all of them.
[[nodiscard]] std::vector<CalibrationCase> calibration_cases(int cores, bool starts_ranks);

/// The same for a GPU: what fills one, in the types that it multiplies in; or small enough for one that is emulated.
[[nodiscard]] std::span<const CalibrationModel> device_models(bool emulated);
/// The most telling first. Ranks share one device, or, where there are more, have one each.
[[nodiscard]] std::vector<CalibrationCase> device_cases(bool emulated, int devices = 1);

}  // namespace shard::commands
