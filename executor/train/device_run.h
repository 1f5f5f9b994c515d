// A training run whose ranks share one GPU: a thread per rank, taking turns.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "executor/cuda/api/api.h"
#include "executor/cuda/comm/same_device.h"
#include "executor/train/session.h"

namespace shard::train {

/// What a rank runs on, while its turn lasts.
struct DeviceRank {
  cuda::DeviceRoom& room;
  cuda::SameDevice& communicator;
};

/// Makes the rank's backend in its room and runs the session on it.
[[nodiscard]] Result<SessionResult> run_session(DeviceRank& rank, const plan::Plan& plan, DataSource& data,
                                                cpu::ThreadPool& pool, const SessionOptions& options);

/// Calls run(rank) for each of `ranks`, rank 0 on the calling thread and the others on threads of their own, one at a
/// time. `graphs`: steps are captured and launched as a whole. `run` returns an Error where the rank failed, which ends
/// the others: they are told by their communicators. Returns the first error of the lowest rank that did not fail
/// because of another.
[[nodiscard]] Result<void> run_ranks(cuda::Api& api, const cuda::Kernels& kernels, int ranks,
                                     std::chrono::milliseconds deadline, bool graphs,
                                     const std::function<Result<void>(DeviceRank&)>& run);

}  // namespace shard::train
