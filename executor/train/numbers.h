// Whether a run still has numbers: losses, gradients' norms and parameters that are finite.
#pragma once

#include "executor/comm/communicator.h"
#include "executor/rank/health.h"
#include "executor/train/session.h"
#include "sim/ir/plan.h"
#include "traces/base/result.h"

namespace shard::train {

// All ranks call both, and all end alike: what is decided on is the same on all of them. They talk to each other only
// where something was found (check_step), or once (check_state). contradiction: what was asked for does not train;
// step, rank and parameter are named as far as a rank saw them.

/// Behind a step: its loss, and its norm where a step is controlled and no loss scaler skips it.
[[nodiscard]] Result<void> check_step(const StepResult& step, const executor::Health& own, const plan::Plan& plan,
                                      Communicator& communicator);

/// Behind the digest phase that ends a run: the parameters.
[[nodiscard]] Result<void> check_state(const executor::Health& own, const plan::Plan& plan, Communicator& communicator);

}  // namespace shard::train
