// Ranks on several hosts: collectives out of MPI's nonblocking point-to-point messages.
#pragma once

#include <memory>

#include "executor/comm/communicator.h"
#include "executor/comm/mpi_runtime.h"
#include "traces/base/result.h"

namespace shard {

/// Collectives out of messages (messages.h) that MPI carries, between the ranks of all hosts.
[[nodiscard]] Result<std::unique_ptr<Communicator>> make_mpi_messages(std::shared_ptr<MpiRuntime> runtime,
                                                                      CommOptions options);

}  // namespace shard
