// A rank that has a device of its own: collectives by NCCL, everything else by a communicator of hosts.
#pragma once

#include <memory>

#include "executor/cuda/api/nccl.h"
#include "executor/cuda/comm/device_communicator.h"
#include "executor/cuda/comm/device_room.h"

namespace shard::cuda {

/// One rank's end; alone in its room. `host` has the same ranks: through it they find each other, exchange texts, and
/// learn that one has died or stopped. Each group that will_call() names becomes a communicator of NCCL in
/// make_arena(). Calls are on the stream when start() returns, which waits, with the deadline, while NCCL works on the
/// host: it does so until all members have come where it sets up a connection. Errors of transfers and of other ranks
/// are seen while something is waited for; then, and at abort(), all transfers of this rank are ended.
///
/// `reproducible`: sums are messages and our kernel (enqueue_tree), which needs the planned workspace, and have the
/// bits of every other communicator. Otherwise they are NCCL's, whose order is its own.
///
/// All that it refers to outlives it. Destroyed by the rank's thread: it waits for the others to come to their ends.
[[nodiscard]] std::unique_ptr<DeviceCommunicator> make_nccl_device(DeviceRoom& room, Nccl& nccl, Communicator& host,
                                                                   bool reproducible);

}  // namespace shard::cuda
