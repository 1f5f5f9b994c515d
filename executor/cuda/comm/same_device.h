// Ranks that share one device, as threads of one process: copies and sums between their arenas, ordered by events.
#pragma once

#include <memory>
#include <vector>

#include "executor/cuda/comm/device_communicator.h"
#include "executor/cuda/comm/device_room.h"

namespace shard::cuda {

/// One communicator per rank, whose thread holds its turn whenever it calls. A call is enqueued on the rank's stream
/// when the last member has started it, and start() returns then: what the stream comes to before the call has finished
/// on every member before any touches another's memory, and what comes behind runs when all members are done with the
/// call. `room` outlives them.
///
/// start() waits for the host threads of the other members, to which it gives its turn, never for the device: a call is
/// enqueued when all have said where their memory is, and before anything that comes behind it. Plans make that safe: a
/// call's op has one id on all ranks, and every rank starts its calls by ascending id, so of all calls that are waited
/// for, the first has no member that waits in another. A member that never comes ends the run at the turns' deadline.
[[nodiscard]] std::vector<std::unique_ptr<DeviceCommunicator>> make_same_device(int world, DeviceRoom& room);

}  // namespace shard::cuda
