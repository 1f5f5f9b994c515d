// How a rank of `shardscope train` comes to its communicator: alone, over MPI, or over TCP, as its launcher has it.
#pragma once

#include <memory>
#include <string>

#include "executor/comm/communicator.h"
#include "executor/commands/train_options.h"
#include "executor/launch/role.h"
#include "sim/cli/command_line.h"

namespace shard::commands {

/// Whether `train` can start ranks by itself: Errc::unavailable where the program was built without MPI.
[[nodiscard]] Result<void> may_start_ranks();

/// Whether the ranks meet over TCP, where each must know the plan before it meets the others.
[[nodiscard]] bool meets_over_tcp(const Role& role);

/// Takes the launcher's number of ranks, and what follows from it: the transport that plans what messages are staged
/// in, where ranks speak over TCP or NCCL. Errc::contradiction naming both where the command line says another.
[[nodiscard]] Result<void> take_world(const cli::Command& command, const Role& role, int ranks, TrainOptions& options);

/// Joins the other ranks, whatever they were started with. Blocking, with the run's deadline.
[[nodiscard]] Result<std::unique_ptr<Communicator>> join_ranks(const Role& role, const TrainOptions& options);

}  // namespace shard::commands
