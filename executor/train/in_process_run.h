// Training runs whose ranks are threads of this process, on its processor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/data/source.h"
#include "executor/train/session.h"
#include "sim/ir/plan_set.h"

namespace shard::train {

/// What a rank's session is told; asked for on the rank's own thread.
using SessionOf = std::function<SessionOptions(std::int32_t rank)>;

/// Runs every rank of `plans`, one for each of `communicators` in order. data, shape: as open_data(). What each
/// measured, by rank; fails with the error that came first, of which the others are told by their communicators.
[[nodiscard]] Result<std::vector<SessionResult>> run_in_process(
    const plan::PlanSet& plans, std::span<const std::unique_ptr<Communicator>> communicators, const std::string& data,
    const BatchShape& shape, const SessionOf& session_of);

}  // namespace shard::train
