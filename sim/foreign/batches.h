// The batch numbers that every tool has: a rank's micro-batch, its micro-steps, the whole batch of a step, the ranks.
#pragma once

#include <optional>
#include <string>

#include "sim/foreign/reading.h"
#include "traces/base/result.h"

namespace shard::foreign {

/// Pointers of a tool's keys; empty for what it does not have. Each may be absent in the file.
struct BatchKeys {
  std::string micro;               ///< sequences per rank and micro-step
  std::string accumulation;        ///< micro-steps
  std::string whole;               ///< sequences of a step over all ranks
  std::int64_t assumed_micro = 1;  ///< what "auto" is
};

/// Accounts for these keys and sets micro-batch and global-batch, and world-size where all three numbers are there and
/// nobody says how many ranks there are. The command line wins; a number that then disagrees is left out. Numbers that
/// agree at no count of ranks are refused. Ranks that share a model (tensor-parallel) count once. Call it after what
/// sets world-size and tensor-parallel.
[[nodiscard]] Result<void> settle_batches(Reading& reading, const BatchKeys& keys);

}  // namespace shard::foreign
