// Do all ways to lay out, gather and reduce units train to the same bits, in the memory and calls planned?
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/strategy/rules.h"
#include "tests/agreement/matrix.h"
#include "tests/daily.h"

namespace shard {
namespace {

using plan::Ownership;

/// The factors, as many values each: world, stage, unit, ownership, hybrid sharding, keep_gathered, reuse_shard,
/// bucket, distributed, recompute, prefetch, loss scale, placement.
const std::vector<std::size_t> kLevels{2, 3, 6, 2, 2, 2, 2, 2, 2, 3, 3, 2, 5};
constexpr std::array<std::size_t, 5> kPlaced{0, 1, 4, 2, 6};  // of kPlacements

struct Class {
  plan::Precision precision;
  bool fp32_reduce_scatter = false;
};

/// Options that contradict others are left out, so that what remains is allowed.
plan::Strategy strategy_of(const std::vector<std::size_t>& row, const Class& of) {
  plan::Strategy s{.world_size = row[0] == 0 ? 2 : 4,
                   .stage = static_cast<std::int32_t>(row[1]) + 1,
                   .unit = row[2] < 4 ? kUnits[row[2]] : plan::UnitKind::chunk,
                   .chunk_elems = Elems{40'000},
                   .micro_batch = 1,
                   .global_batch = 4,
                   .sequence = 8,
                   .recompute = kRecompute[row[9]],
                   .precision = of.precision,
                   .prefetch = static_cast<std::int32_t>(row[10]),
                   .fp32_reduce_scatter = of.fp32_reduce_scatter};
  s.chunk_per_tensor = row[2] == 4;
  if (row[2] == 5) s.chunk_starts = {0, 1, 2, 9, 15};
  s.ownership = row[3] == 1 ? Ownership::rank : Ownership::split;
  s.shard_group = row[4] == 1 && s.world_size >= 4 ? s.world_size / 2 : 0;
  s.keep_gathered = row[5] == 1 && s.stage == 3;
  s.reuse_shard = row[6] == 1 && s.stage == 3 && s.has_masters() && !s.fp32_reduce_scatter && s.accumulation() == 1;
  s.bucket_mib = row[7] == 1 && s.stage >= 2 && s.ownership == Ownership::split ? 1 : 0;
  s.distributed = row[8] == 0;
  if (!plan::check_rules(s)) s.distributed = true;
  s.loss_scaling = row[11] == 1;
  s.placement = kPlacements[kPlaced[row[12]]];
  return s;
}

/// Every pair of choices, and every pair beside those that few of these have: buckets with gradients on the host, and
/// gradients in their parameters' place.
std::vector<std::vector<std::size_t>> rows(const Class& of) {
  std::vector<std::vector<std::size_t>> rows = pairwise(kLevels);
  for (std::vector<std::size_t> row : pairwise({2, 4, 2, 2, 2}))
    rows.push_back({1, row[0] + 1, row[1], 0, row[2], row[3], 0, 1, 0, 0, 1, 0, row[4] + 1});
  if (of.precision == plan::Precision::fp32 || of.fp32_reduce_scatter) return rows;
  for (std::vector<std::size_t> row : pairwise({6, 2, 2, 2, 2, 3, 5}))
    rows.push_back({1, 2, row[0], row[1], row[2], row[3], 1, row[4], 0, row[5], 1, row[3], row[6]});
  return rows;
}

class EveryLayout : public testing::TestWithParam<Class> {};

TEST_P(EveryLayout, ChangesNoBit) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  const train::SessionOptions session = session_of(2);
  const plan::Strategy plain{.micro_batch = 1,
                             .global_batch = 4,
                             .sequence = 8,
                             .precision = GetParam().precision,
                             .fp32_reduce_scatter = GetParam().fp32_reduce_scatter};
  const auto reference = run_in_process(model, plain, session);
  ASSERT_TRUE(reference) << to_string(reference.error());
  std::map<std::string, int> seen;
  const std::vector<std::vector<std::size_t>> all = rows(GetParam());
  for (const std::vector<std::size_t>& row : all) {
    const plan::Strategy s = strategy_of(row, GetParam());
    seen["chunks of their own sizes"] += s.has_variable_chunks();
    seen["owned"] += s.has_owners();
    seen["kept"] += s.keep_gathered;
    seen["reused"] += s.reuses_shards();
    seen["owned and reused"] += s.reuses_shards() && s.has_owners();
    seen["bucket"] += s.bucket_mib > 0;
    seen["whole"] += !s.distributed;
    seen["kept, on host"] += s.keep_gathered && !s.placement.all_on_device();
    seen["bucket, on host"] += s.bucket_mib > 0 && !s.placement.all_on_device();
    seen["owned, placed"] += s.has_owners() && !s.placement.all_on_device();
    seen["placed and reused"] += s.reuses_shards() && !s.placement.all_on_device();
    seen["owned in groups"] += s.has_owners() && s.replicas() > 1;
  }
  for (const std::vector<std::size_t>& row : daily::part_of(all, 6)) {
    const plan::Strategy s = strategy_of(row, GetParam());
    const std::string what = to_string(s);
    const auto run = run_in_process(model, s, session);
    ASSERT_TRUE(run) << what << ": " << to_string(run.error());
    expect_as_planned(*run, session.steps, what);
    EXPECT_EQ(run->ranks[0].state_sha256, reference->ranks[0].state_sha256) << what;
  }
  for (const auto& [option, times] : seen)
    if (!option.ends_with("reused") || (plain.has_masters() && !plain.fp32_reduce_scatter)) {
      EXPECT_GT(times, 0) << option;
    }
}
INSTANTIATE_TEST_SUITE_P(Strategies, EveryLayout,
                         testing::Values(Class{plan::Precision::fp32}, Class{plan::Precision::bf16},
                                         Class{plan::Precision::bf16, true}, Class{plan::Precision::fp16}),
                         [](const auto& param) {
                           return std::string(plan::to_string(param.param.precision)) +
                                  (param.param.fp32_reduce_scatter ? "ReducedInFp32" : "");
                         });

/// Four ranks, one micro-batch each.
plan::Strategy four(std::int32_t stage) {
  return {.world_size = 4,
          .stage = stage,
          .unit = plan::UnitKind::module,
          .micro_batch = 1,
          .global_batch = 4,
          .sequence = 8,
          .precision = plan::Precision::bf16};
}

plan::PlanSet planned(const plan::Strategy& s) {
  auto plans = plan::compile(load_model("gpt2-nano"), s);
  EXPECT_TRUE(plans) << to_string(plans.error());
  return std::move(*plans);
}
std::int64_t extent(const plan::Strategy& s) {
  return planned(s).classes.front().arena_bytes[0].count();
}
std::int64_t calls(const plan::Plan& plan, Collective kind) {
  return std::ranges::count_if(plan.find(Phase::steady_step)->ops, [&](const plan::Op& op) {
    const auto* call = std::get_if<plan::Communicate>(&op.action);
    return call != nullptr && call->kind == kind;
  });
}

TEST(Sharding, OwnersHoldEachUnitOnceAndSendAndReceiveItWhole) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  for (std::int32_t stage : {1, 2, 3}) {
    plan::Strategy s = four(stage);
    s.ownership = Ownership::rank;
    const auto run =
        run_in_process(model, s, {.steps = 2, .scalars = {}, .seed = 7, .after_step = {}, .before_phase = {}});
    ASSERT_TRUE(run) << to_string(run.error());
    Bytes state{0};
    for (const auto& rank : run->ranks) state += rank.optimizer_state;
    EXPECT_EQ(state.count(), 8 * model->parameter_elements() + 4 * static_cast<std::int64_t>(model->parameters.size()));
    const plan::Plan& plan = run->plans.classes.front();
    EXPECT_EQ(calls(plan, Collective::reduce_scatter), 0);
    EXPECT_EQ(calls(plan, Collective::all_gather), 1) << "losses";
    EXPECT_EQ(calls(plan, Collective::reduce), static_cast<std::int64_t>(plan.units.size()));
  }
}

// v0.1.9's chunks: in turn where all are of one size, else to the rank with the fewest elements.
TEST(Sharding, ChunksAreDealtInTurnOrToTheLeastLoaded) {
  plan::Strategy s = four(3);
  s.unit = plan::UnitKind::chunk;
  s.chunk_elems = Elems{30'001};
  s.ownership = Ownership::rank;
  const plan::PlanSet in_turn = planned(s);
  for (std::size_t f = 0; f < in_turn.classes[0].flats.size(); ++f)
    EXPECT_EQ(in_turn.classes[0].flats[f].owner, static_cast<std::int32_t>(f % 4));
  s.chunk_per_tensor = true;
  const plan::PlanSet single = planned(s);
  std::array<std::int64_t, 4> load{};
  for (const plan::Flat& flat : single.classes[0].flats) {
    EXPECT_EQ(flat.items.size(), 1u);
    EXPECT_EQ(flat.owner, std::ranges::min_element(load) - load.begin());
    load[static_cast<std::size_t>(flat.owner)] += flat.elems.count();
  }
}

TEST(Sharding, AKeptUnitIsGatheredOnceAStep) {
  plan::Strategy s = four(3);
  s.global_batch = 16;
  const std::int64_t dropped = calls(planned(s).classes.front(), Collective::all_gather);
  s.keep_gathered = true;
  const plan::PlanSet kept = planned(s);
  EXPECT_EQ(calls(kept.classes.front(), Collective::all_gather),
            static_cast<std::int64_t>(kept.classes.front().units.size()) + 1);
  EXPECT_LT(calls(kept.classes.front(), Collective::all_gather), dropped);
}

TEST(Sharding, AReusedShardSavesTheGradients) {
  plan::Strategy s = four(3);
  s.optimizer = plan::OptimizerKind::sgd;
  const std::int64_t apart = extent(s);
  s.reuse_shard = true;
  EXPECT_LT(extent(s), apart);
  for (const plan::Plan& plan : planned(s).classes)
    for (const plan::Op& op : plan.find(Phase::steady_step)->ops)
      if (const auto* step = std::get_if<plan::OptimizerStep>(&op.action)) {
        EXPECT_EQ(op.operands[1].buffer, plan.flat_parameters[static_cast<std::size_t>(step->flat)]);
      }
}

// The parameters that the gradient overwrote come back from the masters, though these were not stepped.
TEST(Sharding, AReusedShardIsMadeAgainAfterASkippedStep) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  std::string sha;
  for (const auto& [reuse, placement] : {std::pair{false, 0}, std::pair{true, 0}, std::pair{true, 1}})
    for (const Ownership ownership : {Ownership::split, Ownership::rank}) {
      plan::Strategy s = four(3);
      s.precision = plan::Precision::fp16;
      s.reuse_shard = reuse;
      s.ownership = ownership;
      s.placement = kPlacements[static_cast<std::size_t>(placement)];
      train::SessionOptions options{.steps = 3, .scalars = {}, .seed = 7, .after_step = {}, .before_phase = {}};
      options.inject = {{.rank = 1, .step = 1}};
      const auto run = run_in_process(model, s, options);
      ASSERT_TRUE(run) << to_string(run.error());
      EXPECT_EQ(run->ranks[0].controls.at(1).skip, 1);
      if (sha.empty()) sha = run->ranks[0].state_sha256;
      EXPECT_EQ(run->ranks[0].state_sha256, sha) << to_string(s);
    }
}

TEST(Sharding, ABucketReducesInFewerCalls) {
  plan::Strategy s = four(2);
  s.unit = plan::UnitKind::tensor;
  const plan::PlanSet single = planned(s);
  s.bucket_mib = 1;
  const plan::PlanSet together = planned(s);
  EXPECT_LT(4 * calls(together.classes[0], Collective::reduce_scatter),
            calls(single.classes[0], Collective::reduce_scatter));
}

// Every rank keeps every chunk, gradients are all-reduced: the plan of stage 0.
TEST(Sharding, WithoutDistributedStorageEveryStageIsStageZero) {
  plan::Strategy s = four(3);
  s.unit = plan::UnitKind::chunk;
  s.chunk_elems = Elems{40'000};
  s.distributed = false;
  plan::Strategy zero = s;
  zero.stage = 0;
  zero.distributed = true;
  EXPECT_EQ(extent(s), extent(zero));
  EXPECT_EQ(calls(planned(s).classes[0], Collective::all_reduce),
            calls(planned(zero).classes[0], Collective::all_reduce));
}

// Ranks that split a model share its units with those that hold the same part.
TEST(Sharding, ChangesNoBitBesideTensorParallelism) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  std::string sha;
  const auto expect_same = [&](const plan::Strategy& s) {
    const auto run =
        run_in_process(model, s, {.steps = 2, .scalars = {}, .seed = 7, .after_step = {}, .before_phase = {}});
    ASSERT_TRUE(run) << to_string(s) << ": " << to_string(run.error());
    expect_as_planned(*run, 2, to_string(s));
    if (sha.empty()) sha = run->ranks[0].state_sha256;
    EXPECT_EQ(run->ranks[0].state_sha256, sha) << to_string(s);
  };
  plan::Strategy split = four(0);
  split.tensor_parallel = 2;
  split.global_batch = 2;
  expect_same(split);
  for (std::int32_t stage : {1, 2, 3}) {
    plan::Strategy owned = split;
    owned.stage = stage;
    owned.ownership = Ownership::rank;
    expect_same(owned);
    owned.reuse_shard = stage == 3;
    owned.keep_gathered = stage == 3;
    expect_same(owned);
    owned.placement = kPlacements[1];
    expect_same(owned);
    plan::Strategy together = split;
    together.stage = stage;
    together.bucket_mib = stage >= 2 ? 1 : 0;
    together.reuse_shard = stage == 3;
    expect_same(together);
    together.placement = kPlacements[1];
    expect_same(together);
  }
}

// CPU ranks have no TF32.
TEST(Sharding, Tf32IsFp32OnCpuRanks) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  plan::Strategy s = four(2);
  std::string sha;
  for (const plan::Precision precision : {plan::Precision::fp32, plan::Precision::tf32}) {
    s.precision = precision;
    const auto run =
        run_in_process(model, s, {.steps = 2, .scalars = {}, .seed = 7, .after_step = {}, .before_phase = {}});
    ASSERT_TRUE(run) << to_string(run.error());
    if (sha.empty()) sha = run->ranks[0].state_sha256;
    EXPECT_EQ(run->ranks[0].state_sha256, sha);
  }
}

}  // namespace
}  // namespace shard
