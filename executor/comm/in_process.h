// Ranks as threads of one process: for tests, for thread sanitizer, and for a run of one rank.
#pragma once

#include <memory>
#include <vector>

#include "executor/comm/communicator.h"

namespace shard {

/// One communicator per rank, each to be used by one thread. Memory is plain heap memory, freed with the last of them.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_in_process(int world, CommOptions options = {});

/// The only rank of a run: no launcher, no shared memory. Collectives are still counted.
[[nodiscard]] std::unique_ptr<Communicator> make_single(CommOptions options = {});

}  // namespace shard
