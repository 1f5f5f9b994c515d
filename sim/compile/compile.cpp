// The compiler: passes in order, one plan per class of equal ranks.
#include "sim/compile/compile.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <set>

#include "sim/check/verify.h"
#include "sim/compile/packings.h"
#include "sim/compile/parameter_units.h"
#include "sim/compile/passes/passes.h"
#include "sim/compile/placement/automatic.h"
#include "sim/compile/twins.h"
#include "sim/ir/hash.h"
#include "sim/model/freeze.h"
#include "sim/strategy/checks.h"
#include "traces/base/parallel.h"

namespace shard::plan {
namespace {

struct Pass {
  std::string_view name;
  Plan (*run)(Plan, Packings&);
};

/// A pass that knows nothing but its plan.
template <Plan (*kPass)(Plan)>
Plan alone(Plan plan, Packings&) {
  return kPass(std::move(plan));
}

constexpr std::array<Pass, 10> kPasses{{{"differentiate", alone<differentiate>},
                                        {"recompute", alone<recompute>},
                                        {"accumulate", alone<accumulate>},
                                        {"tensor_parallel", alone<tensor_parallel>},
                                        {"shard", alone<shard>},
                                        {"optimize", alone<optimize>},
                                        {"place", alone<place>},
                                        {"schedule", alone<schedule>},
                                        {"order", alone<order>},
                                        {"allocate", allocate}}};

/// No pass before this one looks at the rank.
std::string_view first_rank_pass(const Strategy& strategy) {
  return strategy.has_owners() ? "shard" : "optimize";
}

/// The plan of `rank` after the passes from `begin` on, up to the one named `until` (empty: the last).
Plan run_passes(Plan plan, Packings& packings, const Pass* begin, std::string_view until = {}) {
  for (const Pass* pass = begin; pass != kPasses.data() + kPasses.size(); ++pass) {
    plan = pass->run(std::move(plan), packings);
    if (pass->name == until) break;
  }
  return plan;
}

/// Ranks with equal signatures have equal plans: it holds all that passes take from the rank.
using Signature = std::vector<std::int64_t>;

class Signatures {
 public:
  Signatures(const model::Model& model, const Strategy& s) : strategy_(s) {
    if (s.effective_stage() == 1 && s.partition == Partition::parameter)
      owners_ = greedy_owners(model.parameters, s.data_parallel(), model.frozen);
    else if (s.effective_stage() > 0)
      flats_ = make_units(model, s).first;
  }
  [[nodiscard]] Signature of(std::int32_t rank) const {
    Signature signature;
    const Position at = position(strategy_.topology(), rank);
    for (std::size_t p = 0; p < owners_.size(); ++p)
      if (owners_[p] == at.data) signature.push_back(static_cast<std::int64_t>(p));
    for (const Flat& flat : flats_) {
      if (flat.frozen && flat.owner < 0) continue;
      const ElemRange real = real_shard(flat, at.shard, strategy_.shard_degree());
      signature.push_back((real.end - real.begin).count());
    }
    return signature;
  }

 private:
  const Strategy& strategy_;
  std::vector<std::int32_t> owners_;
  std::vector<Flat> flats_;
};

/// Placement auto where ranks hold unlike data: one decision for all, from what each kind of rank needs. `common`: the
/// plan of any rank after the passes before `begin`.
void place_for_all(Plan& common, const Pass* begin, const Signatures& signatures) {
  const Strategy& s = common.strategy;
  const bool unlike = s.has_owners() || (s.effective_stage() == 1 && s.partition == Partition::parameter);
  if (s.placement.policy != PlacementPolicy::automatic || !unlike) return;
  Packings packings;
  std::vector<Plan> ranks;
  std::set<Signature> seen;
  for (std::int32_t rank = 0; rank < s.world_size; ++rank) {
    if (!seen.insert(signatures.of(rank)).second) continue;
    Plan plan = common;
    plan.rank = rank;
    ranks.push_back(run_passes(std::move(plan), packings, begin, "optimize"));
  }
  common.placed = place_automatically(ranks);
}

/// The passes behind schedule, for one of each kind of twins, beside each other; the others get what they got.
void finish(std::vector<Plan>& classes) {
  std::array<Packings, kMostWorkers> packings;
  const Pass* const begin = std::ranges::find(kPasses, "order", &Pass::name);
  const std::vector<std::size_t> first = first_twins(classes);
  std::vector<std::size_t> firsts;
  for (std::size_t c = 0; c < classes.size(); ++c)
    if (first[c] == c) firsts.push_back(c);
  for_each_index(firsts.size(), is_worth_a_thread(classes.front()), [&](std::size_t i, std::size_t worker) {
    Plan& plan = classes[firsts[i]];
    plan.pool = std::make_shared<Pool>(plan.pool);
    plan = run_passes(std::move(plan), packings[worker], begin);
  });
  for (std::size_t c = 0; c < classes.size(); ++c)
    if (first[c] != c) classes[c] = allocate_like(std::move(classes[c]), classes[first[c]]);
}

/// What each rank computes with.
std::shared_ptr<const model::Model> part_of(std::shared_ptr<const model::Model> whole, const Strategy& s) {
  if (s.tensor_parallel == 1 && s.freeze.empty() && s.dropout == whole->dropout) return whole;
  Result<model::Model> part = model::freeze(
      s.tensor_parallel == 1 ? *whole : model::split_model(*whole, s.tensor_parallel, s.tensor_layout), s.freeze);
  assert(part && "checked");
  part->dropout = s.dropout;
  return std::make_shared<const model::Model>(std::move(*part));
}

}  // namespace

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names{"build"};
  for (const Pass& pass : kPasses) names.push_back(pass.name);
  return names;
}

Result<PlanSet> compile(std::shared_ptr<const model::Model> model, const Strategy& strategy) {
  if (Result<void> ok = check(*model, strategy); !ok) return ok.error();
  model = part_of(std::move(model), strategy);
  PlanSet set;
  std::map<Signature, std::int32_t> known;
  const Signatures signatures(*model, strategy);
  const Pass* const rank_passes = std::ranges::find(kPasses, first_rank_pass(strategy), &Pass::name);
  Packings packings;
  Plan common = build(model, strategy, 0);
  for (const Pass* pass = kPasses.data(); pass != rank_passes; ++pass) common = pass->run(std::move(common), packings);
  place_for_all(common, rank_passes, signatures);
  for (std::int32_t rank = 0; rank < strategy.world_size; ++rank) {
    const auto [it, is_new] = known.try_emplace(signatures.of(rank), static_cast<std::int32_t>(set.classes.size()));
    if (is_new) {
      Plan plan = common;
      plan.rank = rank;
      set.classes.push_back(run_passes(std::move(plan), packings, rank_passes, "schedule"));
      common.placed = set.classes.front().placed;  // rank 0 decides for all
    }
    set.class_of_rank.push_back(it->second);
  }
  finish(set.classes);
  assert(verify(set) && "the passes break no rule of SPEC.md");
  set.hash = hash_of(set.classes, set.class_of_rank);
  return set;
}

Result<Plan> compile_until(std::shared_ptr<const model::Model> model, const Strategy& strategy, std::string_view pass) {
  if (Result<void> ok = check(*model, strategy); !ok) return ok.error();
  model = part_of(std::move(model), strategy);
  std::string names;
  for (std::string_view name : pass_names()) {
    if (name == pass) {
      Plan plan = build(model, strategy, 0);
      if (pass == "build") return plan;
      place_for_all(plan, kPasses.data(), Signatures(*model, strategy));
      Packings packings;
      return run_passes(std::move(plan), packings, kPasses.data(), pass);
    }
    names += names.empty() ? "" : ", ";
    names += name;
  }
  return Error{.code = Errc::usage,
               .what = "there is no pass '" + std::string(pass) + "'",
               .where = "--after",
               .help = "one of " + names};
}

}  // namespace shard::plan
