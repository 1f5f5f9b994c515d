// Whether a card can run a plan's kernels, asked before anything runs.
#pragma once

#include "executor/cuda/api/api.h"
#include "sim/ir/plan.h"

namespace shard::cuda {

/// Errc::unavailable naming the first op of rank `rank` whose blocks take more shared memory than the card has.
[[nodiscard]] Result<void> check_card(const plan::Plan& plan, Rank rank, const DeviceFacts& card);

}  // namespace shard::cuda
