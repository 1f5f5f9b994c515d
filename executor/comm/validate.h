// The checks that every implementation makes of a request before it starts it.
#pragma once

#include <string>

#include "executor/comm/communicator.h"
#include "traces/base/result.h"

namespace shard {

/// Errc::internal naming the op and what is wrong: a group without this rank, a root outside it, sums of a type that
/// has none, buffers outside the arena or overlapping in a way that the contract forbids, sizes that do not divide, too
/// many segments.
[[nodiscard]] Result<void> validate(const CollectiveRequest& request, Rank rank, int world, Bytes arena,
                                    const CommLimits& limits);

/// "rank 2" and "all_gather op 17", for messages.
[[nodiscard]] std::string rank_name(Rank rank);
[[nodiscard]] std::string describe(Collective kind, OpId op);

}  // namespace shard
