// Two strategies' runs of one model and data: do their values, moments and losses have the same bits behind every step,
// and if not, where do they part?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/train/in_process_run.h"
#include "executor/train/state_watch.h"
#include "sim/ir/plan_set.h"

namespace shard::train {

/// Runs a session for every rank of `plans`, and returns what each measured.
using RunPlans =
    std::function<Result<std::vector<SessionResult>>(const plan::PlanSet& plans, const SessionOf& session_of)>;

/// The two runs. Both are of one class (sim/strategy/number_class.h) but for what is looked for.
struct AgreementRuns {
  const plan::PlanSet* reference = nullptr;
  const plan::PlanSet* plans = nullptr;
  RunPlans run_reference{};  ///< may be called twice, and trains the same each time
  RunPlans run{};
  SessionOptions session{};  ///< what both are told; its callbacks are not called
  bool measure = false;      ///< how far apart the parameters end is wanted, too
};

/// Where the runs part.
struct FirstDifference {
  std::int64_t step = 0;                ///< from 1
  std::optional<StateTensor> tensor{};  ///< the first in the model's order; none: the losses alone differ
  std::int32_t rank = 0;  ///< whose part it is that differs; where copies of it differ, the first rank with such a one
  std::int64_t element = 0;  ///< the first that differs, of what a rank of the reference has of the tensor
  double expected = 0;       ///< that of the reference
  double found = 0;
  std::int64_t parameters = 0;  ///< how many differ behind that step, on the rank with the most
};

/// Behind the last step: the largest difference of an element of a parameter, over the largest element of it.
struct LargestDifference {
  double relative = 0;
  std::int32_t param = 0;
};

struct Agreement {
  std::optional<FirstDifference> first{};  ///< none: all bits are equal
  std::optional<LargestDifference> largest{};
  std::vector<float> reference_losses{};
  std::vector<float> losses{};  ///< of the rank whose losses differ, or rank 0
  std::string reference_sha256{};
  std::string sha256{};
};

/// Runs both, and the reference again up to where they part. Errors: of the runs.
[[nodiscard]] Result<Agreement> compare_runs(const AgreementRuns& runs);

}  // namespace shard::train
