// Choices of how units lie, are gathered and reduced that contradict one another.
#include "sim/strategy/conflicts.h"

namespace shard::plan {
namespace {

struct Option {
  std::string name;
  std::string value{};
};

Conflict conflict(Option option, const char* does, Option other, const char* prevents, std::string help) {
  return {.option = std::move(option.name),
          .value = std::move(option.value),
          .does = does,
          .other = std::move(other.name),
          .other_value = std::move(other.value),
          .prevents = prevents,
          .help = std::move(help)};
}

Option stage(const Strategy& s) {
  return {"stage", std::to_string(s.stage)};
}
Option micro_bucket(const Strategy& s) {
  return {"reduce-scatter-bucket-size-mb", std::to_string(s.bucket_mib)};
}

std::optional<Conflict> ownership(const Strategy& s) {
  if (s.ownership == Ownership::split) return std::nullopt;
  const Option owner{"chunk-owner", "rank"};
  const char* does = "gives whole units to single ranks";
  if (s.stage == 0) return conflict(owner, does, stage(s), "keeps all of them on every rank", "--stage 3");
  if (s.partition == Partition::parameter)
    return conflict(owner, does, {"partition", "parameter"}, "gives away single parameters", "--partition flat");
  if (!s.distributed)
    return conflict(owner, does, {"no-distributed-storage"}, "keeps all of them on every rank",
                    "leave one of them out");
  return std::nullopt;
}

std::optional<Conflict> storage(const Strategy& s) {
  if (s.distributed) return std::nullopt;
  const Option whole{"no-distributed-storage"};
  const char* does = "keeps every chunk whole on every rank";
  if (s.unit != UnitKind::chunk)
    return conflict(whole, does, {"unit", to_string(s.unit)}, "makes no chunks", "--unit chunk, or --stage 0");
  if (s.shard_group > 0)
    return conflict(whole, does, {"shard-group", std::to_string(s.shard_group)}, "shards inside groups",
                    "leave one of them out");
  if (s.partition == Partition::parameter)
    return conflict(whole, does, {"partition", "parameter"}, "gives optimizer state to single ranks",
                    "--partition flat");
  if (s.keep_gathered)
    return conflict(whole, does, {"keep-gathered"}, "is about units that are gathered", "leave one of them out");
  if (s.reuse_shard) return conflict(whole, does, {"reuse-fp16-shard"}, "is about shards", "leave one of them out");
  if (s.bucket_mib > 0)
    return conflict(whole, does, micro_bucket(s), "is about gradients that are scattered", "leave one of them out");
  return std::nullopt;
}

std::optional<Conflict> reuse(const Strategy& s) {
  if (!s.reuse_shard) return std::nullopt;
  const Option reuse{"reuse-fp16-shard"};
  const char* does = "puts the gradient's shard where the 16-bit parameters' was";
  if (!s.has_masters())
    return conflict(reuse, does, {"precision", to_string(s.precision)},
                    "has no masters to make the parameters from again", "--precision bf16");
  if (s.stage < 3) return conflict(reuse, does, stage(s), "keeps all parameters on every rank", "--stage 3");
  if (s.fp32_reduce_scatter)
    return conflict(reuse, does, {"fp32-reduce-scatter"}, "makes gradients twice as large", "leave one of them out");
  if (s.accumulation() > 1)
    return conflict(reuse, does, {"global-batch", std::to_string(s.global_batch)},
                    "takes several micro-steps, which need the parameters again",
                    "--global-batch " + std::to_string(s.micro_batch * s.data_parallel()));
  return std::nullopt;
}

std::optional<Conflict> bucket(const Strategy& s) {
  if (s.bucket_mib == 0) return std::nullopt;
  const char* does = "reduces units together after every micro-step";
  if (s.stage < 2) return conflict(micro_bucket(s), does, stage(s), "reduces them once a step", "--stage 2");
  if (s.ownership == Ownership::rank)
    return conflict(micro_bucket(s), does, {"chunk-owner", "rank"}, "sends them to different ranks",
                    "--chunk-owner split");
  return std::nullopt;
}

/// A gradient in its parameters' place is in their memory; where one of the two is not placed it follows the other.
std::optional<Conflict> placement(const Strategy& s) {
  const Placement& p = s.placement;
  if (!s.reuse_shard || !p.parameters || !p.gradients || *p.parameters == *p.gradients) return std::nullopt;
  return conflict({"grad-placement", to_string(*p.gradients)},
                  "moves gradients, which --reuse-fp16-shard keeps in their parameters' place",
                  {"param-placement", to_string(*p.parameters)}, "says where that is",
                  "--grad-placement " + to_string(*p.parameters));
}

}  // namespace

std::optional<Conflict> sharding_conflict(const Strategy& s) {
  if (std::optional<Conflict> found = ownership(s)) return found;
  if (std::optional<Conflict> found = storage(s)) return found;
  if (s.keep_gathered && s.stage < 3)
    return conflict({"keep-gathered"}, "keeps units after they were gathered for forward", stage(s),
                    "gathers none for it", "--stage 3");
  if (std::optional<Conflict> found = reuse(s)) return found;
  if (std::optional<Conflict> found = placement(s)) return found;
  return bucket(s);
}

}  // namespace shard::plan
