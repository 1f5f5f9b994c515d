// Ranks that see no memory of each other: collectives out of messages, with the bits of the shared ones.
#pragma once

#include <memory>

#include "executor/comm/communicator.h"
#include "executor/comm/message_port.h"

namespace shard {

/// Direct exchanges: every member sends each peer what that peer needs, once, so a rank sends and receives
/// (n-1)/n of the full buffer per gather or scatter among n members, as the best algorithms do, in n-1 messages.
///   all_gather      shards go straight to their places
///   reduce_scatter  tiles of the own part arrive from all peers in the workspace, are summed in tree order and leave
///   all_reduce      the same into the own part of `full`, then the parts are gathered
///   reduce          the same, then the parts go to the root
///   broadcast       a binomial tree from the root
/// Different calls at the same place do not match one another's messages, so they end in the deadline.
[[nodiscard]] std::unique_ptr<Communicator> make_messages(std::unique_ptr<MessagePort> port, CommOptions options);

}  // namespace shard
