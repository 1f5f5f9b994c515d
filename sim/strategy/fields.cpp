// The rows, and where each value lies.
#include "sim/strategy/fields.h"

#include <algorithm>

namespace shard::plan {
namespace {

constexpr std::string_view kModel = "Model";
constexpr std::string_view kSharding = "Sharding";
constexpr std::string_view kTraining = "Training";
constexpr std::string_view kPlacement = "Placement";

/// More than any cluster has.
constexpr double kMostRanks = 1 << 20;
/// A tebibyte.
constexpr double kMostBucketMib = 1 << 20;
/// Times the most ranks it is the largest size.
constexpr double kMostSequences = 1LL << 40;

template <class T, class Of>
T member_type(T Of::*);

/// A member of a strategy, and one of its placement.
template <auto kMember>
constexpr auto own() {
  using T = decltype(member_type(kMember));
  return Member<T>{[](const Strategy& s) -> const T& { return s.*kMember; },
                   [](Strategy& s) -> T& { return s.*kMember; }};
}
template <auto kMember>
constexpr auto placed() {
  using T = decltype(member_type(kMember));
  return Member<T>{[](const Strategy& s) -> const T& { return s.placement.*kMember; },
                   [](Strategy& s) -> T& { return s.placement.*kMember; }};
}
/// An enumerator of either.
template <auto kMember>
constexpr WordMember named() {
  using E = decltype(member_type(kMember));
  if constexpr (requires(Strategy s) { s.*kMember; })
    return {[](const Strategy& s) { return static_cast<std::uint8_t>(s.*kMember); },
            [](Strategy& s, std::uint8_t v) { s.*kMember = static_cast<E>(v); }, words_of<E>};
  else
    return {[](const Strategy& s) { return static_cast<std::uint8_t>(s.placement.*kMember); },
            [](Strategy& s, std::uint8_t v) { s.placement.*kMember = static_cast<E>(v); }, words_of<E>};
}

// When a field is in the strategy's line: always, or where it says something.
bool always(const Strategy& /*s*/) {
  return true;
}
bool has_chunks_of_their_own(const Strategy& s) {
  return s.unit == UnitKind::chunk && s.has_variable_chunks();
}
bool has_equal_chunks(const Strategy& s) {
  return s.unit == UnitKind::chunk && !s.has_variable_chunks();
}
bool has_chunk_size(const Strategy& s) {
  return has_equal_chunks(s) && !s.chunk_per_tensor;
}
bool has_rank_owners(const Strategy& s) {
  return s.ownership == Ownership::rank;
}
bool has_buckets(const Strategy& s) {
  return s.bucket_mib > 0;
}
bool has_shard_groups(const Strategy& s) {
  return s.shard_group > 0;
}
bool on_gpus(const Strategy& s) {
  return s.device == Device::cuda;
}
bool splits_models(const Strategy& s) {
  return s.tensor_parallel > 1;
}
bool predivides(const Strategy& s) {
  return s.predivide != 1.0F;
}
bool drops(const Strategy& s) {
  return s.dropout > 0;
}
bool freezes(const Strategy& s) {
  return !s.freeze.empty();
}
bool is_placed(const Strategy& s) {
  return !s.placement.all_on_device();
}
template <auto kShare>
bool has_share(const Strategy& s) {
  return is_placed(s) && (s.placement.*kShare).has_value();
}
bool fills_device(const Strategy& s) {
  return is_placed(s) && s.placement.policy == PlacementPolicy::automatic;
}
bool has_margin(const Strategy& s) {
  return fills_device(s) && s.placement.margin_ratio < 1;
}
bool has_measured_room(const Strategy& s) {
  return fills_device(s) && s.placement.non_model_peak.has_value();
}

constexpr Field kFields[] = {
    {.id = FieldId::sequence,
     .place = own<&Strategy::sequence>(),
     .key = "sequence",
     .group = kModel,
     .option = "sequence",
     .value_name = "TOKENS",
     .help = "tokens per sequence; predictions for GPUs take up to 4096 unless told",
     .default_text = "the model's longest, at most 1024",
     .least = 1,
     .common = true,
     .text = {.shown = always, .word = "sequence"}},
    {.id = FieldId::world_size,
     .place = own<&Strategy::world_size>(),
     .key = "world_size",
     .group = kSharding,
     .option = "world-size",
     .alias = "ranks",
     .value_name = "N",
     .help = "number of ranks",
     .least = 1,
     .most = kMostRanks,
     .common = true,
     .text = {.shown = always, .word = "world"}},
    {.id = FieldId::stage,
     .place = own<&Strategy::stage>(),
     .key = "stage",
     .group = kSharding,
     .option = "stage",
     .value_name = "0..3",
     .help = "ZeRO stage: 1 shards optimizer state, 2 gradients too, 3 parameters too",
     .least = 0,
     .most = 3,
     .common = true,
     .text = {.shown = always, .word = "stage"}},
    {.id = FieldId::unit,
     .place = named<&Strategy::unit>(),
     .key = "unit",
     .group = kSharding,
     .option = "unit",
     .help = "what is gathered, released and reduced together",
     .common = true,
     .text = {.shown = always, .word = "unit"}},
    {.id = FieldId::partition,
     .place = named<&Strategy::partition>(),
     .key = "partition",
     .group = kSharding,
     .option = "partition",
     .help = "who owns which optimizer state",
     .text = {.shown = always, .word = "partition"}},
    {.id = FieldId::chunk_elems,
     .place = own<&Strategy::chunk_elems>(),
     .key = "chunk_elements",
     .group = kSharding,
     .option = "chunk-size",
     .value_name = "ELEMS|search|variable[:ELEMS]|none",
     .help = "unit chunk: elements of a chunk, or the least waste; variable: few chunks of their own sizes, of at most "
             "so many elements, at most 0.1 % waste; none: a chunk per tensor",
     .given_by = GivenBy::chunks,
     .common = true,
     .text = {.shown = has_chunk_size, .word = "of", .behind = " elements"}},
    {.id = FieldId::chunk_per_tensor,
     .place = own<&Strategy::chunk_per_tensor>(),
     .key = "chunk_per_tensor",
     .group = kSharding,
     .option = "chunk-size",
     .given_by = GivenBy::chunks,
     .text = {.shown = has_equal_chunks, .word = "per tensor"}},
    {.id = FieldId::chunk_starts,
     .place = own<&Strategy::chunk_starts>(),
     .key = "chunk_first_parameters",
     .group = kSharding,
     .option = "chunk-size",
     .given_by = GivenBy::chunks,
     .text = {.shown = has_chunks_of_their_own, .word = "from parameters"}},
    {.id = FieldId::ownership,
     .place = named<&Strategy::ownership>(),
     .key = "chunk_owner",
     .group = kSharding,
     .option = "chunk-owner",
     .help = "where a unit that is sharded rests, of whatever kind",
     .ours = true,
     .text = {.shown = has_rank_owners, .word = "owned_by"}},
    {.id = FieldId::distributed,
     .place = own<&Strategy::distributed>(),
     .key = "distributed_storage",
     .group = kSharding,
     .option = "distributed-storage",
     .help = "unit chunk: spread chunks over ranks as the stage says; without, every rank keeps every chunk",
     .ours = true,
     .text = {.shown = always, .otherwise = "not_distributed"}},
    {.id = FieldId::keep_gathered,
     .place = own<&Strategy::keep_gathered>(),
     .key = "keep_gathered",
     .group = kSharding,
     .option = "keep-gathered",
     .help = "stage 3: gather a unit once a step and drop it after its last use, not after forward",
     .ours = true,
     .text = {.shown = always, .word = "keep_gathered"}},
    {.id = FieldId::reuse_shard,
     .place = own<&Strategy::reuse_shard>(),
     .key = "reuse_fp16_shard",
     .group = kSharding,
     .option = "reuse-fp16-shard",
     .help = "stage 3, 16 bits, one micro-step: the gradient's shard takes the parameters' place until the step",
     .ours = true,
     .text = {.shown = always, .word = "reuse_shard"}},
    {.id = FieldId::bucket_mib,
     .place = own<&Strategy::bucket_mib>(),
     .key = "reduce_scatter_bucket_mib",
     .group = kSharding,
     .option = "reduce-scatter-bucket-size-mb",
     .value_name = "MIB",
     .help = "stages 2 and 3: reduce units together, up to so many MiB a call; 0: each by itself",
     .least = 0,
     .most = kMostBucketMib,
     .ours = true,
     .text = {.shown = has_buckets, .word = "bucket_mib"}},
    {.id = FieldId::prefetch,
     .place = own<&Strategy::prefetch>(),
     .key = "prefetch",
     .group = kSharding,
     .option = "prefetch",
     .value_name = "N",
     .help = "stage 3: gathers that run ahead of their use",
     .least = 0,
     .most = 1024,
     .text = {.shown = always, .word = "prefetch"}},
    {.id = FieldId::shard_group,
     .place = own<&Strategy::shard_group>(),
     .key = "shard_group",
     .group = kSharding,
     .option = "shard-group",
     .value_name = "N",
     .help = "hybrid sharding: shard inside groups of N ranks, replicate across them",
     .default_text = "all ranks",
     .least = 0,
     .most = kMostRanks,
     .ours = true,
     .text = {.shown = has_shard_groups, .word = "shard_group"}},
    {.id = FieldId::tensor_parallel,
     .place = own<&Strategy::tensor_parallel>(),
     .key = "tensor_parallel",
     .group = kSharding,
     .option = "tensor-parallel",
     .value_name = "N",
     .help = "ranks that split each model between them",
     .least = 1,
     .most = kMostRanks,
     .common = true,
     .ours = true,
     .text = {.shown = splits_models, .word = "tensor_parallel"}},
    {.id = FieldId::tensor_layout,
     .place = named<&Strategy::tensor_layout>(),
     .key = "tensor_parallel_layout",
     .group = kSharding,
     .option = "tensor-parallel-layout",
     .help = "which part of each parameter a rank has",
     .ours = true,
     .text = {.shown = splits_models}},
    {.id = FieldId::transport,
     .place = named<&Strategy::transport>(),
     .key = "transport",
     .group = kSharding,
     .option = "transport",
     .help = "how ranks exchange data",
     .ours = true,
     .text = {.shown = always, .word = "transport"}},
    {.id = FieldId::device,
     .place = named<&Strategy::device>(),
     .key = "device",
     .group = kSharding,
     .option = "device",
     .help = "what ranks compute on",
     .ours = true,
     .text = {.shown = on_gpus, .word = "device"}},
    {.id = FieldId::micro_batch,
     .place = own<&Strategy::micro_batch>(),
     .key = "micro_batch",
     .group = kTraining,
     .option = "micro-batch",
     .value_name = "N",
     .help = "sequences (mlp: samples) per rank and micro-step",
     .least = 1,
     .most = kMostSequences,
     .common = true,
     .text = {.shown = always, .word = "micro_batch"}},
    {.id = FieldId::global_batch,
     .place = own<&Strategy::global_batch>(),
     .key = "global_batch",
     .group = kTraining,
     .option = "global-batch",
     .value_name = "N",
     .help = "sequences per step over all ranks",
     .default_text = "micro-batch x data-parallel ranks",
     .least = 1,
     .common = true,
     .text = {.shown = always, .word = "global_batch"}},
    {.id = FieldId::optimizer,
     .place = named<&Strategy::optimizer>(),
     .key = "optimizer",
     .group = kTraining,
     .option = "optimizer",
     .help = "how parameters are stepped",
     .common = true,
     .text = {.shown = always, .word = "optimizer"}},
    {.id = FieldId::recompute,
     .place = named<&Strategy::recompute>(),
     .key = "recompute",
     .group = kTraining,
     .option = "recompute",
     .help = "activation checkpointing",
     .common = true,
     .text = {.shown = always, .word = "recompute"}},
    {.id = FieldId::precision,
     .place = named<&Strategy::precision>(),
     .key = "precision",
     .group = kTraining,
     .option = "precision",
     .help = "what parameters, gradients and activations are stored as; a config.json's torch_dtype is\nfollowed by "
             "predictions for GPUs alone",
     .common = true,
     .text = {.shown = always, .word = "precision"}},
    {.id = FieldId::fp32_reduce_scatter,
     .place = own<&Strategy::fp32_reduce_scatter>(),
     .key = "fp32_reduce_scatter",
     .group = kTraining,
     .option = "fp32-reduce-scatter",
     .help = "widen 16-bit gradients before they are summed over micro-batches and ranks",
     .ours = true,
     .text = {.shown = always, .word = "fp32_reduce_scatter"}},
    {.id = FieldId::clip_norm,
     .place = own<&Strategy::clip_norm>(),
     .key = "clip_norm",
     .group = kTraining,
     .option = "clip-norm",
     .value_name = "NORM",
     .help = "scale gradients down to this norm over all parameters",
     .given_by = GivenBy::asked,
     .ours = true,
     .text = {.shown = always, .word = "clip_norm"}},
    {.id = FieldId::loss_scaling,
     .place = own<&Strategy::loss_scaling>(),
     .key = "loss_scaling",
     .group = kTraining,
     .given_by = GivenBy::none,
     .text = {.shown = always, .word = "loss_scaling"}},
    {.id = FieldId::predivide,
     .place = own<&Strategy::predivide>(),
     .key = "gradient_predivide_factor",
     .group = kTraining,
     .option = "gradient-predivide-factor",
     .value_name = "F",
     .help =
         "divide gradients by F before they are summed over ranks and by ranks / F after; 1: all before, in the loss",
     .least = 1e-6,
     .most = 1e6,
     .ours = true,
     .text = {.shown = predivides, .word = "predivide"}},
    {.id = FieldId::dropout,
     .place = own<&Strategy::dropout>(),
     .key = "dropout",
     .group = kTraining,
     .option = "dropout",
     .value_name = "P",
     .help = "drop results of embeddings, attention probabilities and what residuals add (mlp: hidden values) with "
             "this probability",
     .least = 0,
     .ours = true,
     .text = {.shown = drops, .word = "dropout"}},
    {.id = FieldId::threads,
     .place = own<&Strategy::threads>(),
     .key = "threads",
     .group = kTraining,
     .option = "threads",
     .value_name = "N",
     .help = "compute threads per rank",
     .least = 1,
     .most = 1024,
     .ours = true,
     .text = {.shown = always, .word = "threads"}},
    {.id = FieldId::reproducible,
     .place = own<&Strategy::reproducible>(),
     .key = "reproducible",
     .group = kTraining,
     .option = "reproducible",
     .help = "sum gradients along one fixed tree, so that the result does not depend on the strategy",
     .text = {.shown = always, .word = "reproducible", .otherwise = "fast_sums"}},
    {.id = FieldId::evaluates,
     .place = own<&Strategy::evaluates>(),
     .key = "evaluates",
     .group = kTraining,
     .given_by = GivenBy::none,
     .text = {.shown = always, .word = "evaluates"}},
    {.id = FieldId::freeze,
     .place = own<&Strategy::freeze>(),
     .key = "freeze",
     .group = kTraining,
     .option = "freeze",
     .value_name = "PATTERN[,...]",
     .help = "parameters that keep their first values, for no gradient and no optimizer state: names, with * and ? as "
             "in file names",
     .ours = true,
     .text = {.shown = freezes, .word = "freeze"}},
    {.id = FieldId::placement,
     .place = named<&Placement::policy>(),
     .key = "placement",
     .group = kPlacement,
     .option = "placement",
     .help = "where model data rests between uses",
     .common = true,
     .ours = true,
     .text = {.shown = is_placed, .word = "placement"}},
    {.id = FieldId::param_placement,
     .place = ShareMember{placed<&Placement::parameters>(), false},
     .key = "param_placement",
     .group = kPlacement,
     .option = "param-placement",
     .value_name = "device|host|FRACTION",
     .help = "parameters: a memory, or the fraction of their bytes that stays on the device (largest units first)",
     .ours = true,
     .text = {.shown = has_share<&Placement::parameters>, .word = "parameters"}},
    {.id = FieldId::grad_placement,
     .place = ShareMember{placed<&Placement::gradients>(), false},
     .key = "grad_placement",
     .group = kPlacement,
     .option = "grad-placement",
     .value_name = "device|host|FRACTION",
     .help = "reduced gradients, in the same way",
     .ours = true,
     .text = {.shown = has_share<&Placement::gradients>, .word = "gradients"}},
    {.id = FieldId::optimizer_placement,
     .place = ShareMember{placed<&Placement::optimizer>(), true},
     .key = "optimizer_placement",
     .group = kPlacement,
     .option = "optimizer-placement",
     .value_name = "device|host|disk|FRACTION",
     .help = "optimizer state and master parameters, in the same way; a shard steps where they rest",
     .ours = true,
     .text = {.shown = has_share<&Placement::optimizer>, .word = "optimizer"}},
    {.id = FieldId::margin_ratio,
     .place = placed<&Placement::margin_ratio>(),
     .key = "gpu_margin_mem_ratio",
     .group = kPlacement,
     .option = "gpu-margin-mem-ratio",
     .value_name = "FRACTION",
     .help = "placement auto: share of the device memory left over that optimizer state may take",
     .least = 0,
     .most = 1,
     .ours = true,
     .text = {.shown = has_margin, .word = "margin"}},
    {.id = FieldId::non_model_peak,
     .place = placed<&Placement::non_model_peak>(),
     .key = "non_model_peak_bytes",
     .group = kPlacement,
     .option = "from-trace",
     .value_name = "FILE",
     .help = "placement auto: what activations and the like took at most, from a measured run",
     .given_by = GivenBy::asked,
     .ours = true,
     .text = {.shown = has_measured_room, .word = "non_model_peak"}},
    {.id = FieldId::device_capacity,
     .place = placed<&Placement::device_capacity>(),
     .key = "device_capacity_bytes",
     .group = kPlacement,
     .option = "device-capacity",
     .alias = "device-memory",
     .value_name = "BYTES",
     .help = "what a rank may use of device memory, instead of the cluster's; more does not run",
     .given_by = GivenBy::asked,
     .common = true,
     .text = {.shown = fills_device, .word = "device_capacity"}},
};

}  // namespace

std::span<const Field> fields() {
  return kFields;
}

const Field& field(FieldId id) {
  return kFields[static_cast<std::size_t>(id)];
}

const Field* find_field(std::string_view option) {
  const auto at = std::ranges::find(kFields, option, &Field::option);
  return option.empty() || at == std::end(kFields) ? nullptr : at;
}

}  // namespace shard::plan
