// Neighbours in order of price.
#include "sim/engine/smallest_change.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/strategy/fields.h"

namespace shard::engine {
namespace {

using plan::Recompute;
using plan::Strategy;
using plan::UnitKind;

using plan::FieldId;

/// A strategy and how it differs from the user's.
struct Candidate {
  Strategy strategy;
  std::vector<FieldId> changed{};  ///< in the order in which they are said, each once
  std::string_view beside{};       ///< what goes with them and is no field
};

void say(Candidate& c, FieldId field) {
  if (std::ranges::find(c.changed, field) == c.changed.end()) c.changed.push_back(field);
}

/// The options that make one of the other.
std::string options_of(const Candidate& c) {
  std::string text;
  for (const FieldId id : c.changed) text += (text.empty() ? "" : " ") + plan::option_text(plan::field(id), c.strategy);
  return text + std::string(c.beside);
}

// Each returns false where the step cannot be taken.

bool distribute(Candidate& c) {
  if (c.strategy.distributed || c.strategy.world_size == 1 || c.strategy.stage == 0) return false;
  c.strategy.distributed = true;
  say(c, FieldId::distributed);
  return true;
}

bool reduce_one_by_one(Candidate& c) {
  if (c.strategy.bucket_mib == 0) return false;
  c.strategy.bucket_mib = 0;
  say(c, FieldId::bucket_mib);
  return true;
}

/// Costs nothing, and changes no bit of the result.
bool reuse_shards(Candidate& c) {
  const Strategy& s = c.strategy;
  if (s.reuse_shard || s.stage != 3 || !s.distributed || !s.has_masters() || s.fp32_reduce_scatter ||
      s.accumulation() != 1)
    return false;
  c.strategy.reuse_shard = true;
  say(c, FieldId::reuse_shard);
  return true;
}

/// Where whole units make one rank hold more than others.
bool split_units(Candidate& c) {
  if (c.strategy.ownership == plan::Ownership::split) return false;
  c.strategy.ownership = plan::Ownership::split;
  if (c.strategy.unit == UnitKind::chunk && !c.strategy.chunk_per_tensor && !c.strategy.has_variable_chunks() &&
      c.strategy.chunk_elems.count() % c.strategy.cuts() != 0)
    return false;
  say(c, FieldId::ownership);
  return true;
}

bool drop_behind_forward(Candidate& c) {
  if (!c.strategy.keep_gathered) return false;
  c.strategy.keep_gathered = false;
  say(c, FieldId::keep_gathered);
  return true;
}

bool raise_stage(Candidate& c, std::int32_t stage) {
  if (c.strategy.world_size == 1 || c.strategy.stage >= stage) return false;
  c.strategy.stage = stage;
  if (stage != 1) c.strategy.partition = plan::Partition::flat;
  say(c, FieldId::stage);
  return true;
}

bool recompute(Candidate& c, Recompute how) {
  if (c.strategy.recompute == how || c.strategy.recompute == Recompute::block) return false;
  c.strategy.recompute = how;
  say(c, FieldId::recompute);
  return true;
}

/// The global batch stays, so that the result of training does.
bool shrink_micro_batch(Candidate& c, std::int64_t micro_batch) {
  if (micro_batch >= c.strategy.micro_batch || micro_batch < 1) return false;
  if (c.strategy.global_batch % (micro_batch * c.strategy.data_parallel()) != 0) return false;
  c.strategy.micro_batch = micro_batch;
  say(c, FieldId::micro_batch);
  return true;
}

bool shrink_chunk(Candidate& c, std::int64_t divisor) {
  if (c.strategy.unit != UnitKind::chunk || c.strategy.chunk_per_tensor) return false;
  const Elems smaller = round_up(Elems{c.strategy.chunk_elems.count() / divisor}, c.strategy.cuts());
  if (smaller >= c.strategy.chunk_elems || smaller < Elems{1}) return false;
  c.strategy.chunk_elems = smaller;
  c.strategy.chunk_starts.clear();
  say(c, FieldId::chunk_elems);
  return true;
}

struct Kind {
  std::optional<plan::Share> plan::Placement::*share;
  FieldId field;
};
constexpr Kind kParameters{&plan::Placement::parameters, FieldId::param_placement};
constexpr Kind kGradients{&plan::Placement::gradients, FieldId::grad_placement};
constexpr Kind kOptimizer{&plan::Placement::optimizer, FieldId::optimizer_placement};

/// One kind of model data to another memory, or back from it. Where all are in host memory each is said anew, and what
/// names the disk goes with what is on it: options that contradict each other are refused.
bool rest(Candidate& c, const Kind& kind, plan::Share where) {
  plan::Placement& p = c.strategy.placement;
  const bool on_host = p.policy == plan::PlacementPolicy::host;
  if (p.policy == plan::PlacementPolicy::automatic) return false;
  const plan::Share now = (p.*kind.share).value_or(on_host ? plan::kOnHost : plan::kOnDevice);
  if (now == where) return false;
  p.*kind.share = where;
  if (on_host) {
    p.policy = plan::PlacementPolicy::fixed;
    say(c, FieldId::placement);
    for (const Kind& each : {kParameters, kGradients, kOptimizer}) {
      p.*each.share = (p.*each.share).value_or(plan::kOnHost);
      say(c, each.field);
    }
  } else {
    say(c, kind.field);
  }
  if (where == plan::kOnDisk) c.beside = " --disk-path DIR";
  if (now.rest == Memory::disk && where.rest != Memory::disk) c.beside = ", and leave --disk-path out";
  return true;
}

/// What is not placed by itself.
bool rest_all(Candidate& c, plan::PlacementPolicy where) {
  plan::Placement& p = c.strategy.placement;
  if (p.policy == plan::PlacementPolicy::automatic || p.policy == where) return false;
  if (where == plan::PlacementPolicy::device && p.policy != plan::PlacementPolicy::host) return false;
  p.policy = where;
  say(c, FieldId::placement);
  return true;
}

std::vector<Candidate> candidates(const Strategy& strategy) {
  std::vector<Candidate> all;
  const auto one = [&](auto step) {
    Candidate c{.strategy = strategy};
    if (step(c)) all.push_back(std::move(c));
  };
  one(distribute);
  one(reduce_one_by_one);
  one(reuse_shards);
  one(split_units);
  one(drop_behind_forward);
  for (std::int32_t stage = strategy.stage + 1; stage <= 3; ++stage) {
    one([&](Candidate& c) { return raise_stage(c, stage); });
  }
  for (const Recompute how : {Recompute::selective, Recompute::block})
    one([&](Candidate& c) { return recompute(c, how); });
  one([](Candidate& c) { return shrink_micro_batch(c, c.strategy.micro_batch / 2); });
  for (const std::int64_t divisor : {2, 4}) one([&](Candidate& c) { return shrink_chunk(c, divisor); });
  const auto place = [&](const Kind& kind, plan::Share where) {
    one([&](Candidate& c) { return rest(c, kind, where); });
  };
  place(kOptimizer, plan::kOnHost);
  place(kGradients, plan::kOnHost);
  one([](Candidate& c) { return rest_all(c, plan::PlacementPolicy::host); });
  // Where host memory is short.
  place(kGradients, plan::kOnDevice);
  place(kParameters, plan::kOnDevice);
  place(kOptimizer, plan::kOnDevice);
  place(kOptimizer, plan::kOnDisk);
  one([](Candidate& c) { return rest_all(c, plan::PlacementPolicy::device); });

  // Together, each adding to the one before: what is already there is left as it is.
  Candidate c{.strategy = strategy};
  const bool distributes = distribute(c);
  const bool reduces = reduce_one_by_one(c);
  const bool drops = drop_behind_forward(c);
  if (int{distributes} + int{reduces} + int{drops} > 1) all.push_back(c);
  if (raise_stage(c, 3)) all.push_back(c);
  if (recompute(c, Recompute::block)) all.push_back(c);
  for (std::int64_t micro = c.strategy.micro_batch / 2; micro >= 1; micro /= 2)
    if (shrink_micro_batch(c, micro)) all.push_back(c);
  if (shrink_chunk(c, 4)) all.push_back(c);
  if (rest_all(c, plan::PlacementPolicy::host)) all.push_back(c);
  return all;
}

}  // namespace

std::optional<Change> smallest_change(const Strategy& strategy, Bytes capacity, const PeakOf& peak_of) {
  for (Candidate& c : candidates(strategy)) {
    const Result<Bytes> peak = peak_of(c.strategy);
    if (peak && *peak <= capacity) return Change{options_of(c), c.strategy, *peak};
  }
  return std::nullopt;
}

}  // namespace shard::engine
