// What one collective over NCCL enqueues on a rank's stream.
#pragma once

#include <functional>

#include "executor/comm/communicator.h"
#include "executor/cuda/api/nccl.h"
#include "executor/cuda/comm/device_room.h"

namespace shard::cuda {

/// A member's own part of a call.
struct NcclCall {
  const DeviceRoom& room;
  Nccl& nccl;
  NcclComm comm = nullptr;  ///< of the group; null where it has one member
  Stream stream = nullptr;
  Rank rank{};
  RankGroup group{};  ///< resolved
  std::byte* arena = nullptr;
  const CollectiveRequest& request;
  /// Returns when NCCL is done with its work on the host, so that what it was asked for is on the stream.
  std::function<Result<void>()> settle;
};

[[nodiscard]] constexpr bool is_sum(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::all_reduce || kind == Collective::reduce;
}

/// As NCCL's own calls, grouped over the segments: sums in NCCL's order. Returns the bytes that a ring sends for it.
[[nodiscard]] Result<Bytes> enqueue_native(const NcclCall& call);

/// A sum as sends and receives and the kernel that sums along Communicator's tree, so that it has the bits of every
/// other communicator: each member gets all others' values of its part in the request's workspace, piece after piece,
/// sums them with its own, and sends the sums to who wants them. Returns the bytes sent. Needs the workspace that
/// comm_workspace_bytes gives. Errc::contradiction where members are more than kMostMembers.
[[nodiscard]] Result<Bytes> enqueue_tree(const NcclCall& call);

}  // namespace shard::cuda
