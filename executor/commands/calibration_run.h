// One training of a calibration: run as a child of this process, its trace joined with the plan it followed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "executor/commands/calibration_cases.h"
#include "sim/cost/fit.h"
#include "sim/ir/plan_set.h"
#include "traces/base/result.h"

namespace shard::commands {

/// What was seen of one case, over all its repetitions.
struct CaseRecord {
  CalibrationCase of;
  plan::PlanSet plans;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<double>> op_seconds;  ///< by class of ranks and op
  std::vector<double> step_seconds;                                                 ///< steady ones
};

/// Plans the case; nothing has run yet. `folder` holds NAME.json of every model.
[[nodiscard]] Result<CaseRecord> plan_case(const CalibrationCase& of, const std::string& folder);

/// Trains `steps` steps as `shardscope train` does and adds what the steady ones took. False: it took longer than
/// `seconds`, was ended, and nothing was added. Errors: those of the training, with its own words.
[[nodiscard]] Result<bool> run_case(CaseRecord& record, const std::string& folder, int steps, double seconds);

/// Op by op the lower quartile over steps, repetitions and ranks.
[[nodiscard]] std::vector<cost::OpSample> samples_of(const CaseRecord& record);
/// Of rank 0.
[[nodiscard]] cost::StepSample step_of(const CaseRecord& record);

}  // namespace shard::commands
