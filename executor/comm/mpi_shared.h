// Ranks of one host under MPI: the shared-memory algorithm over MPI-3 shared windows.
#pragma once

#include <memory>

#include "executor/comm/communicator.h"
#include "executor/comm/mpi_runtime.h"
#include "traces/base/result.h"

namespace shard {

/// Collective over runtime->host(), which must be all ranks.
[[nodiscard]] Result<std::unique_ptr<Communicator>> make_mpi_shared(std::shared_ptr<MpiRuntime> runtime,
                                                                    CommOptions options);

}  // namespace shard
