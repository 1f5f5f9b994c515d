// Ranks as threads of one process: for tests, for thread sanitizer, and for a run of one rank.
#pragma once

#include <memory>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/progress.h"

namespace shard {

/// One communicator per rank, each to be used by one thread. Memory is plain heap memory, freed with the last of them.
/// `progress`: what is noted there puts the deadline of exchanges off, and its clock measures them.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_in_process(
    int world, CommOptions options = {}, const std::shared_ptr<Progress>& progress = std::make_shared<Progress>());

/// The only rank of a run: no launcher, no shared memory. Collectives are still counted.
[[nodiscard]] std::unique_ptr<Communicator> make_single(CommOptions options = {});

}  // namespace shard
