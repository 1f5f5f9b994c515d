// What one collective between ranks of one device enqueues.
#pragma once

#include <span>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/cuda/comm/same_device.h"

namespace shard::cuda {

/// A member of a call, and what it asked for.
struct CallMember {
  Rank rank{};
  Stream stream = nullptr;
  std::byte* arena = nullptr;
  Event arrived = nullptr;  ///< recorded by start(); the others are recorded by the call
  Event half = nullptr;
  Event done = nullptr;
  CollectiveRequest request{};
  std::vector<CommSegment> segments{};  ///< of the request, kept

  [[nodiscard]] std::byte* full(std::size_t segment) const { return arena + segments[segment].full_offset; }
  [[nodiscard]] std::byte* shard(std::size_t segment) const { return arena + segments[segment].shard_offset; }
};

/// Enqueues the call of all members, in the order of the group, on each one's stream.
[[nodiscard]] Result<void> enqueue_call(const DeviceRoom& room, std::span<CallMember> members);

}  // namespace shard::cuda
