// Options of how units lie on ranks, and when they are gathered and reduced.
#include "sim/commands/sharding_options.h"

#include "sim/cli/contradiction.h"
#include "sim/strategy/conflicts.h"

namespace shard::commands {

void add_sharding_options(cli::Group& group, ShardingOptions& o) {
  group.add_choice<plan::Ownership>(
      "chunk-owner", &o.chunk_owner,
      {{"split", plan::Ownership::split, "every rank has an equal part of each"},
       {"rank", plan::Ownership::rank, "each lies whole on one rank, dealt in turn: broadcast and reduce"}},
      "where a unit that is sharded rests, of whatever kind");
  group.add_switch("distributed-storage", &o.distributed_storage,
                   "unit chunk: spread chunks over ranks as the stage says; without, every rank keeps every chunk");
  group.add_switch("keep-gathered", &o.keep_gathered,
                   "stage 3: gather a unit once a step and drop it after its last use, not after forward");
  group.add_switch("reuse-fp16-shard", &o.reuse_fp16_shard,
                   "stage 3, 16 bits, one micro-step: the gradient's shard takes the parameters' place until the step");
  group
      .add("reduce-scatter-bucket-size-mb", &o.reduce_scatter_bucket_size_mb, "MIB",
           "stages 2 and 3: reduce units together, up to so many MiB a call; 0: each by itself")
      .least(0)
      .most(1 << 20);
}

void apply(const ShardingOptions& o, plan::Strategy& s) {
  s.ownership = o.chunk_owner;
  s.distributed = o.distributed_storage;
  s.keep_gathered = o.keep_gathered;
  s.reuse_shard = o.reuse_fp16_shard;
  s.bucket_mib = o.reduce_scatter_bucket_size_mb;
}

Result<void> check_sharding(const cli::Command& command, const plan::Strategy& s) {
  const std::optional<plan::Conflict> found = plan::sharding_conflict(s);
  if (!found) return {};
  // A switch that is on by default is named without its "no-".
  const auto described = [&](const std::string& option) {
    return command.describe(option.starts_with("no-") ? option.substr(3) : option);
  };
  return cli::contradiction(
      described(found->option) + " " + found->does + ", but " + described(found->other) + " " + found->prevents,
      found->help);
}

}  // namespace shard::commands
