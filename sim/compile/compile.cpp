// The compiler: passes in order, one plan per class of equal ranks.
#include "sim/compile/compile.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <map>
#include <span>

#include "sim/check/verify.h"
#include "sim/compile/packings.h"
#include "sim/compile/parameter_units.h"
#include "sim/compile/passes/passes.h"
#include "sim/compile/placement/automatic.h"
#include "sim/compile/placement/shares.h"
#include "sim/compile/twins.h"
#include "sim/ir/hash.h"
#include "sim/model/freeze.h"
#include "sim/strategy/checks.h"
#include "traces/base/parallel.h"

namespace shard::plan {
namespace {

struct Pass {
  std::string_view name;
  Draft (*run)(Draft, Packings&);
};

/// A pass that knows nothing but its draft.
template <Draft (*kPass)(Draft)>
Draft alone(Draft plan, Packings&) {
  return kPass(std::move(plan));
}

constexpr std::array<Pass, 14> kPasses{{{"differentiate", alone<differentiate>},
                                        {"recompute", alone<recompute>},
                                        {"fuse", alone<fuse>},
                                        {"accumulate", alone<accumulate>},
                                        {"tensor_parallel", alone<tensor_parallel>},
                                        {"shard", alone<shard>},
                                        {"optimize", alone<optimize>},
                                        {"place", alone<place>},
                                        {"pin", alone<pin>},
                                        {"schedule", alone<schedule>},
                                        {"evaluate", alone<evaluate>},
                                        {"order", alone<order>},
                                        {"allocate", allocate},
                                        {"overlap", alone<overlap>}}};

/// No pass before this one looks at the rank.
std::string_view first_rank_pass(const Strategy& strategy) {
  return strategy.has_owners() ? "shard" : "optimize";
}

/// The draft after the passes from `first` until `last`, both included.
Draft run_passes(Draft plan, Packings& packings, std::string_view first, std::string_view last) {
  for (const Pass* pass = std::ranges::find(kPasses, first, &Pass::name); pass != std::end(kPasses); ++pass) {
    plan = pass->run(std::move(plan), packings);
    if (pass->name == last) break;
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
      if (flat.frozen && flat.owner < 0 && strategy_.effective_stage() < 3) continue;  // whole on every rank
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

/// One draft for all ranks with equal signatures, behind pass optimize, rank 0's first.
struct Kinds {
  std::vector<Draft> drafts;
  std::vector<std::int32_t> of_rank;  ///< index into drafts
  std::string folded_hash{};          ///< of whole plans that fold: of the folded ones; else empty
};

Result<PlanSet> compile_part(const std::shared_ptr<const model::Model>& part, const Strategy& strategy,
                             MicroSteps micro_steps);

/// The longest step that a plan holds, in ops; a whole plan of it takes some ten gigabytes.
constexpr std::int64_t kMostOps = std::int64_t{16} << 20;

/// The operators of one micro-step, forward, and backward for input and weight, in every micro-step.
Result<void> check_length(const Draft& built) {
  const Strategy& s = built.strategy;
  const std::int64_t each = 3 * static_cast<std::int64_t>(built.graph->operators.size());
  if (built.folds || s.accumulation() * each <= kMostOps) return {};
  const std::int64_t of_rank = std::max<std::int64_t>(1, kMostOps / each);
  const bool automatic = s.placement.policy == PlacementPolicy::automatic;
  return Error{.code = Errc::contradiction,
               .what = "a plan with " + std::to_string(s.accumulation()) + " micro-steps a step, of some " +
                       std::to_string(each) + " ops each, would take more memory than a machine should give",
               .where = "strategy",
               .help = "a larger --micro-batch, or --global-batch " +
                       std::to_string(of_rank * s.micro_batch * s.data_parallel()) + " at most" +
                       (automatic ? "; a --placement other than auto to predict as many" : "")};
}

Result<Kinds> kinds_of(const std::shared_ptr<const model::Model>& model, const Strategy& strategy,
                       MicroSteps micro_steps) {
  Kinds kinds;
  std::map<Signature, std::int32_t> known;
  const Signatures signatures(*model, strategy);
  Packings packings;
  const std::string_view first = first_rank_pass(strategy);
  Draft common = build(model, strategy, 0);
  common.folds = micro_steps == MicroSteps::folded && folds(strategy);
  if (Result<void> ok = check_length(common); !ok) return ok.error();
  for (const Pass* pass = kPasses.data(); pass->name != first; ++pass) common = pass->run(std::move(common), packings);
  for (std::int32_t rank = 0; rank < strategy.world_size; ++rank) {
    const auto [it, is_new] = known.try_emplace(signatures.of(rank), static_cast<std::int32_t>(kinds.drafts.size()));
    if (is_new) {
      Draft draft = common;
      draft.rank = rank;
      kinds.drafts.push_back(run_passes(std::move(draft), packings, first, "optimize"));
    }
    kinds.of_rank.push_back(it->second);
  }
  if (micro_steps == MicroSteps::all && folds(strategy)) {
    Result<PlanSet> folded = compile_part(model, strategy, MicroSteps::folded);
    if (!folded) return folded.error();
    kinds.folded_hash = std::move(folded->hash);
    for (std::size_t k = 0; k < kinds.drafts.size(); ++k)
      kinds.drafts[k].folded = std::make_shared<const Plan>(std::move(folded->classes[k]));
  }
  return kinds;
}

/// Where model data rests on all ranks. Where they hold unlike data, automatic placement looks at every kind.
void decide_placement(std::vector<Draft>& kinds) {
  const Draft& first = kinds.front();
  const Strategy& s = first.strategy;
  Placed placed;
  if (s.placement.policy == PlacementPolicy::automatic) {
    const bool unlike = s.has_owners() || (s.effective_stage() == 1 && s.partition == Partition::parameter);
    Packings packings;
    placed = place_automatically(
        std::span<const Draft>(kinds).first(unlike ? kinds.size() : 1),
        [&](Draft draft, std::string_view until) { return run_passes(std::move(draft), packings, "place", until); });
  } else {
    placed.resting = rest_by_share(s, first.flats, first.units);
  }
  for (Draft& kind : kinds) kind.placed = placed;
}

/// The passes behind schedule, for one of each kind of twins, beside each other; the others get what they got.
void finish(std::vector<Draft>& kinds) {
  std::array<Packings, kMostWorkers> packings;
  const std::vector<std::size_t> first = first_twins(kinds);
  std::vector<std::size_t> firsts;
  for (std::size_t k = 0; k < kinds.size(); ++k)
    if (first[k] == k) firsts.push_back(k);
  for_each_index(firsts.size(), is_worth_a_thread(kinds.front()), [&](std::size_t i, std::size_t worker) {
    Draft& kind = kinds[firsts[i]];
    kind.pool = std::make_shared<Pool>(kind.pool);
    kind = run_passes(std::move(kind), packings[worker], "order", "allocate");
  });
  for (std::size_t k = 0; k < kinds.size(); ++k)
    if (first[k] != k) kinds[k] = allocate_like(std::move(kinds[k]), kinds[first[k]]);
  for (Draft& kind : kinds) kind = run_passes(std::move(kind), packings.front(), "overlap", "overlap");
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

/// From what each rank computes with.
Result<PlanSet> compile_part(const std::shared_ptr<const model::Model>& part, const Strategy& strategy,
                             MicroSteps micro_steps) {
  Result<Kinds> kinds = kinds_of(part, strategy, micro_steps);
  if (!kinds) return kinds.error();
  decide_placement(kinds->drafts);
  Packings packings;
  for (Draft& kind : kinds->drafts) kind = run_passes(std::move(kind), packings, "place", "evaluate");
  finish(kinds->drafts);
  PlanSet set;
  set.classes.assign(std::make_move_iterator(kinds->drafts.begin()), std::make_move_iterator(kinds->drafts.end()));
  set.class_of_rank = std::move(kinds->of_rank);
  set.hash = kinds->folded_hash.empty() ? hash_of(set.classes, set.class_of_rank) : kinds->folded_hash;
  // The rules are about every micro-batch; a folded plan has not all of them.
  assert((!set.classes.front().micro_step_times.empty() || verify(set)) && "the passes break no rule of SPEC.md");
  return set;
}

}  // namespace

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names{"build"};
  for (const Pass& pass : kPasses) names.push_back(pass.name);
  return names;
}

bool folds(const Strategy& strategy) {
  // Automatic placement fills the device micro-step by micro-step, and no two alike.
  return is_foldable(strategy.accumulation()) && strategy.placement.policy != PlacementPolicy::automatic;
}

Result<PlanSet> compile(std::shared_ptr<const model::Model> model, const Strategy& strategy, MicroSteps micro_steps) {
  if (Result<void> ok = check(*model, strategy); !ok) return ok.error();
  return compile_part(part_of(std::move(model), strategy), strategy, micro_steps);
}

Result<Plan> compile_until(std::shared_ptr<const model::Model> model, const Strategy& strategy, std::string_view pass) {
  if (Result<void> ok = check(*model, strategy); !ok) return ok.error();
  model = part_of(std::move(model), strategy);
  if (pass == "build") return Plan(build(model, strategy, 0));
  const auto* const last = std::ranges::find(kPasses, pass, &Pass::name);
  if (last == kPasses.end()) {
    std::string names;
    for (std::string_view name : pass_names()) names.append(names.empty() ? "" : ", ").append(name);
    return Error{.code = Errc::usage,
                 .what = "there is no pass '" + std::string(pass) + "'",
                 .where = "--after",
                 .help = "one of " + names};
  }
  Packings packings;
  if (last < std::ranges::find(kPasses, "place", &Pass::name)) {
    Draft built = build(model, strategy, 0);
    if (Result<void> ok = check_length(built); !ok) return ok.error();
    return Plan(run_passes(std::move(built), packings, kPasses.front().name, pass));
  }
  Result<Kinds> kinds = kinds_of(model, strategy, MicroSteps::all);
  if (!kinds) return kinds.error();
  decide_placement(kinds->drafts);
  return Plan(run_passes(std::move(kinds->drafts.front()), packings, "place", pass));
}

}  // namespace shard::plan
