// The order of a calibration's trainings and the time that they may take: each once, then all again while time is left.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "executor/commands/calibration_run.h"
#include "traces/base/result.h"

namespace shard::commands {

/// What time it is, and until when trainings may run; both in seconds since any fixed moment.
struct CalibrationTime {
  std::function<double()> now;
  double begin = 0;
  double end = 0;
  int most_rounds = 8;  ///< more repetitions hardly change a lower quartile
};

struct Rounds {
  int whole = 0;             ///< rounds of all trainings
  std::size_t left_out = 0;  ///< trainings that had no time in the first round
};

/// Runs one training, which is ended when so many seconds are over. False: it was, and nothing was kept of it.
using RunOneCase = std::function<Result<bool>(CaseRecord& record, double seconds)>;
/// `done`: share of the time, 0 to 1.
using SayRounds = std::function<void(double done, const std::string& what)>;

/// No training begins that would not end in time, if it took as long as it did before, or in the first round as those
/// before it did on average; the first begins in any case. Nor does a further round. Errors: the trainings', and
/// retryable where there was no time for a single one.
[[nodiscard]] Result<Rounds> run_rounds(std::span<CaseRecord> records, const CalibrationTime& time,
                                        const RunOneCase& run, const SayRounds& say);

}  // namespace shard::commands
