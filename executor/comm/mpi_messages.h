// Ranks on several hosts: collectives out of nonblocking point-to-point messages, with the bits of the shared ones.
#pragma once

#include <memory>

#include "executor/comm/communicator.h"
#include "executor/comm/mpi_runtime.h"
#include "traces/base/result.h"

namespace shard {

/// Direct exchanges: every member sends each peer what that peer needs, once, so a rank sends and receives
/// (n-1)/n of the full buffer per gather or scatter among n members, as the best algorithms do, in n-1 messages.
///   all_gather      shards go straight to their places
///   reduce_scatter  tiles of the own part arrive from all peers in the workspace, are summed in tree order and leave
///   all_reduce      the same into the own part of `full`, then the parts are gathered
///   reduce          the same, then the parts go to the root
///   broadcast       a binomial tree from the root
/// Different calls at the same place do not match one another's messages, so they end in the deadline.
[[nodiscard]] Result<std::unique_ptr<Communicator>> make_mpi_messages(std::shared_ptr<MpiRuntime> runtime,
                                                                      CommOptions options);

}  // namespace shard
