// Training runs whose ranks share one GPU, taking turns, or have one each, over NCCL.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>

#include "executor/cuda/api/api.h"
#include "executor/cuda/api/nccl.h"
#include "executor/cuda/comm/device_communicator.h"
#include "executor/cuda/comm/device_room.h"
#include "executor/train/session.h"

namespace shard::train {

/// What a rank runs on; where it shares it, while its turn lasts.
struct DeviceRank {
  cuda::DeviceRoom& room;
  cuda::DeviceCommunicator& communicator;
};

/// Makes the rank's backend in its room and runs the session on it.
[[nodiscard]] Result<SessionResult> run_session(DeviceRank& rank, const plan::Plan& plan, DataSource& data,
                                                cpu::ThreadPool& pool, const SessionOptions& options);

/// Calls run(rank) for each of `ranks`, rank 0 on the calling thread and the others on threads of their own, one at a
/// time. `graphs`: steps are captured and launched as a whole. `run` returns an Error where the rank failed, which ends
/// the others: they are told by their communicators. Returns the first error of the lowest rank that did not fail
/// because of another.
/// `witness`: see DeviceRoom. `deadline`: how long nothing moves, by the clock of `progress`, until a rank hangs.
[[nodiscard]] Result<void> run_ranks(cuda::Api& api, const cuda::Kernels& kernels, int ranks,
                                     std::chrono::milliseconds deadline, bool graphs,
                                     const std::function<Result<void>(DeviceRank&)>& run,
                                     cuda::Witness* witness = nullptr,
                                     std::shared_ptr<Progress> progress = std::make_shared<Progress>());

/// What a rank has for itself.
struct OwnDevice {
  cuda::Api& api;
  const cuda::Kernels& kernels;
  cuda::Nccl& nccl;
};
struct OwnDeviceOptions {
  std::chrono::milliseconds deadline{60'000};
  bool graphs = true;
  cuda::Witness* witness = nullptr;  ///< see DeviceRoom
  bool reproducible = true;  ///< sums along Communicator's tree, for which the plan has a workspace; else NCCL's
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();  ///< of this process's ranks; see above
};

/// The rank of `host` on its device; the other ranks do the same, in other threads or processes. Errors of `run` end
/// them too.
[[nodiscard]] Result<void> run_rank(const OwnDevice& device, Communicator& host, const OwnDeviceOptions& options,
                                    const std::function<Result<void>(DeviceRank&)>& run);

/// A rank for each device, rank 0 on the calling thread and the others on threads of their own, all at once. `run` as
/// above. Returns the error that came first.
[[nodiscard]] Result<void> run_ranks(std::span<const OwnDevice> devices, const OwnDeviceOptions& options,
                                     const std::function<Result<void>(DeviceRank&)>& run);

}  // namespace shard::train
