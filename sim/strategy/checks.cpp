// Whether a strategy contradicts itself or the model.
#include "sim/strategy/checks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

#include "sim/model/freeze.h"
#include "sim/model/graph_limits.h"
#include "sim/strategy/conflicts.h"

namespace shard::plan {
namespace {

/// A plan names every micro-step's ops.
constexpr std::int64_t kMaxMicroSteps = 1 << 20;

Error contradiction(std::string what, std::string help) {
  return {.code = Errc::contradiction, .what = std::move(what), .where = "strategy", .help = std::move(help)};
}

/// "world size 8", or where those are not all "the 4 ranks that ...".
std::string ranks_that(const Strategy& s, std::int32_t ranks, const char* what) {
  if (ranks == s.world_size) return "world size " + std::to_string(ranks);
  return "the " + std::to_string(ranks) + " ranks that " + what;
}

/// Hybrid sharding divides the data-parallel ranks evenly, and needs something that is sharded.
Result<void> check_shard_group(const Strategy& s) {
  if (s.shard_group == 0) return {};
  const std::string group = "--shard-group " + std::to_string(s.shard_group);
  if (s.shard_group < 2 || s.data_parallel() % s.shard_group != 0)
    return contradiction(group + " does not divide the " + std::to_string(s.data_parallel()) + " data-parallel ranks",
                         "--shard-group " + std::to_string(s.data_parallel()));
  if (s.stage == 0) return contradiction(group + " shards, but --stage 0 shards nothing", "--stage 3");
  if (s.partition == Partition::parameter)
    return contradiction(group + " cuts flats, but --partition parameter gives away whole parameters",
                         "--partition flat");
  return {};
}

Result<void> check_precision(const Strategy& s) {
  if (s.fp32_reduce_scatter && !s.has_masters())
    return contradiction("--fp32-reduce-scatter widens 16-bit gradients, but --precision is fp32", "--precision bf16");
  if (!(s.predivide > 0) || !std::isfinite(s.predivide))
    return contradiction("--gradient-predivide-factor is not a positive number", "--gradient-predivide-factor 1");
  return {};
}

Result<void> check_placement(const Strategy& s) {
  const Placement& p = s.placement;
  const auto is_fraction = [](double v) { return v >= 0 && v <= 1; };
  for (const auto& [option, share, disk] :
       {std::tuple{"--param-placement", p.parameters, false}, std::tuple{"--grad-placement", p.gradients, false},
        std::tuple{"--optimizer-placement", p.optimizer, true}}) {
    if (!share) continue;
    if (!is_fraction(share->on_device))
      return contradiction(std::string(option) + " " + to_string(*share) + " is no fraction between 0 and 1", "0.5");
    if (share->on_device < 1 && share->rest != Memory::host && (share->rest != Memory::disk || !disk))
      return contradiction(std::string(option) + " " + to_string(*share) + ": only optimizer state may rest on disk",
                           std::string(option) + " host");
  }
  if (p.policy != PlacementPolicy::automatic) return {};
  if (p.device_capacity.count() <= 0)
    return contradiction("--placement auto has no device memory to fill", "--device-capacity BYTES");
  if (!is_fraction(p.margin_ratio))
    return contradiction("--gpu-margin-mem-ratio is no fraction between 0 and 1", "--gpu-margin-mem-ratio 1");
  return {};
}

/// Chunks of their own sizes begin at parameters that there are, trained and frozen ones each at their first.
Result<void> check_chunk_starts(const model::Model& model, const Strategy& s) {
  const char* help = "--chunk-size variable";
  if (s.unit != UnitKind::chunk || s.chunk_per_tensor)
    return contradiction("chunks of their own sizes without unit chunk, or with a chunk per tensor", help);
  const std::vector<std::int32_t>& starts = s.chunk_starts;
  if (starts.front() < 0 || starts.back() >= static_cast<std::int64_t>(model.parameters.size()) ||
      std::ranges::adjacent_find(starts, std::ranges::greater_equal{}) != starts.end())
    return contradiction("chunks do not begin at parameters of " + model.name + " in ascending order", help);
  const Result<model::Model> part = model::freeze(model, s.freeze);
  if (!part) return part.error();
  for (const bool frozen : {false, true})
    for (std::int32_t p = 0; p < static_cast<std::int64_t>(model.parameters.size()); ++p) {
      if (part->is_frozen(model::ParamId{p}) != frozen) continue;
      if (!std::ranges::binary_search(starts, p))
        return contradiction(std::string("no chunk begins at the first ") + (frozen ? "frozen" : "trained") +
                                 " parameter, '" + model.parameters[static_cast<std::size_t>(p)].name + "'",
                             help);
      break;
    }
  return {};
}

Result<void> check_sharding(const Strategy& s) {
  const std::optional<Conflict> found = sharding_conflict(s);
  if (!found) return {};
  const auto spelled = [](const std::string& name, const std::string& value) {
    return "--" + name + (value.empty() ? "" : " " + value);
  };
  return contradiction(spelled(found->option, found->value) + " " + found->does + ", but " +
                           spelled(found->other, found->other_value) + " " + found->prevents,
                       found->help);
}

}  // namespace

Result<void> check_tensor_parallel(const model::Model& model, const Strategy& s) {
  if (s.tensor_parallel < 1 || s.world_size % s.tensor_parallel != 0)
    return contradiction("--tensor-parallel " + std::to_string(s.tensor_parallel) + " does not divide --world-size " +
                             std::to_string(s.world_size),
                         "--tensor-parallel " + std::to_string(std::gcd(s.tensor_parallel, s.world_size)));
  return model::check_split(model, s.tensor_parallel, s.tensor_layout);
}

Result<void> check(const model::Model& model, const Strategy& s) {
  const auto n = [](std::int64_t v) { return std::to_string(v); };
  if (s.world_size < 1) return contradiction("world size " + n(s.world_size) + " is not positive", "--world-size 1");
  if (s.stage < 0 || s.stage > 3)
    return contradiction("stage " + n(s.stage) + " is not one of 0, 1, 2, 3", "--stage 3");
  if (s.micro_batch < 1)
    return contradiction("micro-batch " + n(s.micro_batch) + " is not positive", "--micro-batch 1");
  if (s.threads < 1) return contradiction("threads " + n(s.threads) + " is not positive", "--threads 1");
  if (s.prefetch < 0) return contradiction("prefetch distance " + n(s.prefetch) + " is negative", "--prefetch 0");
  if (Result<void> ok = check_tensor_parallel(model, s); !ok) return ok;
  if (Result<void> ok = check_shard_group(s); !ok) return ok;
  if (Result<void> ok = check_precision(s); !ok) return ok;
  if (Result<void> ok = check_placement(s); !ok) return ok;
  if (!s.freeze.empty())
    if (Result<model::Model> frozen = model::freeze(model, s.freeze); !frozen) return frozen.error();
  if (!(s.dropout >= 0 && s.dropout < 1))
    return contradiction("--dropout " + std::to_string(s.dropout) + " is not a probability below 1", "--dropout 0.1");
  const std::int64_t step = s.micro_batch * s.data_parallel();
  if (s.global_batch < step || s.global_batch % step != 0)
    return contradiction("global batch " + n(s.global_batch) + " is not a positive multiple of micro-batch " +
                             n(s.micro_batch) + " x " + ranks_that(s, s.data_parallel(), "work on different data"),
                         "--global-batch " + n(std::max<std::int64_t>(1, s.global_batch / step) * step));
  if (s.accumulation() > kMaxMicroSteps)
    return contradiction("global batch " + n(s.global_batch) + " takes " + n(s.accumulation()) +
                             " micro-steps a step; at most " + n(kMaxMicroSteps) + " are supported",
                         "--global-batch " + n(step * kMaxMicroSteps) + " or a larger --micro-batch");
  if (s.sequence < 1) return contradiction("sequence " + n(s.sequence) + " is not positive", "--sequence 1");
  if (model.family == model::Family::mlp && s.sequence != 1)
    return contradiction("sequence " + n(s.sequence) + " has no meaning for an mlp, whose batches count samples",
                         "leave --sequence out");
  if (model.max_sequence > 0 && s.sequence > model.max_sequence)
    return contradiction(
        "sequence " + n(s.sequence) + " exceeds the " + n(model.max_sequence) + " positions of " + model.name,
        "--sequence " + n(model.max_sequence));
  // Stage 0 partitions nothing, so any partition is right there.
  if (s.partition == Partition::parameter && s.stage > 1)
    return contradiction("--partition parameter belongs to stage 1, but --stage is " + n(s.stage), "--stage 1");
  if (Result<void> ok = check_sharding(s); !ok) return ok;
  if (s.has_variable_chunks()) return check_chunk_starts(model, s);
  if (s.unit == UnitKind::chunk && !s.chunk_per_tensor) {
    if (s.chunk_elems.count() < 1) return contradiction("unit chunk without a chunk size", "--chunk-size search");
    if (s.chunk_elems.count() > model::kMaxValueElements)
      return contradiction(
          "chunk size " + n(s.chunk_elems.count()) + " elements is more than 2^48, which is not supported",
          "--chunk-size search");
    if (s.chunk_elems.count() % s.cuts() != 0)
      return contradiction("chunk size " + n(s.chunk_elems.count()) + " elements is not a multiple of " +
                               ranks_that(s, s.shard_degree(), "share its shards"),
                           "--chunk-size " + n(round_up(s.chunk_elems, s.cuts()).count()));
  }
  return {};
}

}  // namespace shard::plan
