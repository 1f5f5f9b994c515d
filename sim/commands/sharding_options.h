// Options of how units lie on ranks, and when they are gathered and reduced; their contradictions with the others.
#pragma once

#include "sim/cli/command_line.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::commands {

/// Values as given.
struct ShardingOptions {
  plan::Ownership chunk_owner = plan::Ownership::split;
  bool distributed_storage = true;
  bool keep_gathered = false;
  bool reuse_fp16_shard = false;
  int reduce_scatter_bucket_size_mb = 0;
};

/// Declares --chunk-owner, --no-distributed-storage, --keep-gathered, --reuse-fp16-shard and
/// --reduce-scatter-bucket-size-mb.
void add_sharding_options(cli::Group& group, ShardingOptions& options);

/// Into the strategy.
void apply(const ShardingOptions& options, plan::Strategy& strategy);

/// Contradiction (78) that names both options and where each came from. The rest of the strategy must be filled in.
[[nodiscard]] Result<void> check_sharding(const cli::Command& command, const plan::Strategy& strategy);

}  // namespace shard::commands
