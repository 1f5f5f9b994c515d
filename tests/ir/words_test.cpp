// Which ops does a strategy make of a model, in which order? Plans as words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/check/verify.h"
#include "tests/compile/support.h"

namespace shard::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

Strategy zero(std::int32_t stage, std::int32_t world, std::int64_t accumulation = 1, std::int32_t prefetch = 0) {
  return {.world_size = world,
          .stage = stage,
          .unit = UnitKind::module,
          .micro_batch = 1,
          .global_batch = world * accumulation,
          .sequence = 1,
          .prefetch = prefetch};
}

std::string words_of(const ModelPtr& model, const Strategy& strategy) {
  const PlanSet plans = compiled(model, strategy);
  EXPECT_TRUE(verify(plans)) << to_string(verify(plans).error());
  return words(plans.classes.front());
}

/// Only the ops of these beginnings.
std::string only(const std::string& text, std::initializer_list<std::string_view> beginnings) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(" | ", at), text.size());
    const std::string word = text.substr(at, end - at);
    if (std::ranges::any_of(beginnings, [&](std::string_view b) { return word.starts_with(b); }))
      result += (result.empty() ? "" : " | ") + word;
    at = end + 3;
  }
  return result;
}

TEST(PlanWords, OneRankNeedsNoCollectives) {
  for (std::int32_t stage = 0; stage <= 3; ++stage)
    EXPECT_EQ(words_of(two_layers(), zero(stage, 1)),
              "load scalars | load batch | 0 | 1 | loss | loss backward | 1 backward_input | 1 backward_weight | "
              "0 backward_weight | step block 0 | step block 1 | mean loss");
}

TEST(PlanWords, Stage0ReducesEachUnitWhenItsGradientIsWhole) {
  EXPECT_EQ(words_of(two_layers(), zero(0, 2)),
            "load scalars | load batch | 0 | 1 | loss | loss backward | 1 backward_input | 1 backward_weight | "
            "reduce block 1 | 0 backward_weight | reduce block 0 | step block 0 | step block 1 | gather losses | "
            "mean loss");
}

TEST(PlanWords, Stages1And2RefreshEachUnitBehindItsStep) {
  for (std::int32_t stage : {1, 2})
    EXPECT_EQ(words_of(two_layers(), zero(stage, 2)),
              "load scalars | load batch | 0 | 1 | loss | loss backward | 1 backward_input | 1 backward_weight | "
              "reduce block 1 | 0 backward_weight | reduce block 0 | step block 0 | refresh block 0 | step block 1 | "
              "refresh block 1 | gather losses | mean loss");
}

TEST(PlanWords, Stage3GathersBeforeUseAndKeepsTheLastUnitForItsOwnBackward) {
  EXPECT_EQ(words_of(two_layers(), zero(3, 2)),
            "load scalars | load batch | gather block 0 | 0 | gather block 1 | 1 | loss | loss backward | "
            "1 backward_input | 1 backward_weight | reduce block 1 | 0 backward_weight | reduce block 0 | "
            "step block 0 | step block 1 | gather losses | mean loss");
}

TEST(PlanWords, PrefetchMovesAGatherToWhereAnEarlierOneStood) {
  const ModelPtr four = model_from(R"({"model_type": "mlp", "sizes": [2, 2, 2, 2, 2]})");
  const auto forward = [&](std::int32_t prefetch) {
    const std::string text = words_of(four, zero(3, 2, 1, prefetch));
    return only(text.substr(0, text.find("loss")), {"gather", "0", "1", "2", "3"});
  };
  EXPECT_EQ(forward(0), "gather block 0 | 0 | gather block 1 | 1 | gather block 2 | 2 | gather block 3 | 3");
  EXPECT_EQ(forward(1),
            "gather block 0 | gather block 1 | 0 | gather block 2 | 1 | gather block 3 | 2 | gather block 1 | 3");
  EXPECT_EQ(forward(2), "gather block 0 | gather block 1 | gather block 2 | 0 | gather block 3 | 1 | 2 | 3");
}

TEST(PlanWords, AUnitStaysGatheredWhereItsPrefetchWouldComeBeforeItsLastUse) {
  // Backward of block 2 follows its forward with only block 3 between: at distance 1 there is no moment to be without.
  const ModelPtr four = model_from(R"({"model_type": "mlp", "sizes": [2, 2, 2, 2, 2]})");
  const auto gathers = [&](std::int32_t prefetch) {
    return only(words_of(four, zero(3, 2, 1, prefetch)), {"gather b"});
  };
  EXPECT_EQ(gathers(0),
            "gather block 0 | gather block 1 | gather block 2 | gather block 3 | gather block 2 | gather block 1");
  EXPECT_EQ(gathers(1), "gather block 0 | gather block 1 | gather block 2 | gather block 3 | gather block 1");
  EXPECT_EQ(gathers(2), "gather block 0 | gather block 1 | gather block 2 | gather block 3");
}

TEST(PlanWords, MicroStepsOfOneRankAddUpAsABinaryCounter) {
  EXPECT_EQ(only(words_of(two_layers(), zero(0, 1, 4)), {"load batch", "1 backward_weight", "add gradient block 1"}),
            "load batch | 1 backward_weight | load batch | 1 backward_weight | add gradient block 1 | load batch | "
            "1 backward_weight | load batch | 1 backward_weight | add gradient block 1 | add gradient block 1");
}

TEST(PlanWords, WithoutATreeLeavesAreAddedInPlace) {
  Strategy s = zero(0, 1, 4);
  s.reproducible = false;
  EXPECT_THAT(words_of(two_layers(), s), Not(HasSubstr("add gradient")));
}

TEST(PlanWords, ATreeNodeOverShardsStandsBehindTheNextReduction) {
  EXPECT_THAT(words_of(two_layers(), zero(2, 2, 2)),
              HasSubstr("1 backward_weight | reduce block 1 | 0 backward_weight | reduce block 0 | "
                        "add gradient block 1 | add gradient block 0 | step block 0"));
}

TEST(PlanWords, RecomputationMakesAgainWhatBackwardReadsAndNoMore) {
  Strategy s = zero(3, 2);
  s.sequence = 4;
  s.recompute = Recompute::block;
  EXPECT_EQ(only(words_of(small_gpt2(), s), {"gather block 1", "transformer.h.1", "reduce block 1"}),
            "gather block 1 | transformer.h.1.ln_1 | transformer.h.1.attn.c_attn | transformer.h.1.attn | "
            "transformer.h.1.attn.c_proj | transformer.h.1.attn.residual | transformer.h.1.ln_2 | "
            "transformer.h.1.mlp.c_fc | transformer.h.1.mlp.act | transformer.h.1.mlp.c_proj | "
            "transformer.h.1.mlp.residual | gather block 1 | transformer.h.1.ln_1 again | "
            "transformer.h.1.attn.c_attn again | transformer.h.1.attn again | transformer.h.1.attn.c_proj again | "
            "transformer.h.1.attn.residual again | transformer.h.1.ln_2 again | transformer.h.1.mlp.c_fc again | "
            "transformer.h.1.mlp.act again | transformer.h.1.mlp.c_proj backward_input | "
            "transformer.h.1.mlp.c_proj backward_weight | transformer.h.1.mlp.act backward | "
            "transformer.h.1.mlp.c_fc backward_input | transformer.h.1.mlp.c_fc backward_weight | "
            "transformer.h.1.ln_2 backward | transformer.h.1.attn.c_proj backward_input | "
            "transformer.h.1.attn.c_proj backward_weight | transformer.h.1.attn backward | "
            "transformer.h.1.attn.c_attn backward_input | transformer.h.1.attn.c_attn backward_weight | "
            "transformer.h.1.ln_1 backward | reduce block 1");
}

TEST(PlanWords, ChunksOfTheirOwnSizesHoldWhatBeginsWithThemRoundedUpToTheRanks) {
  Strategy s = zero(3, 2);
  s.unit = UnitKind::chunk;
  s.chunk_starts = {0, 2, 3};  // of 6x5, 5, 5x3 and 3 elements
  const PlanSet plans = compiled(two_layers(), s);
  ASSERT_TRUE(verify(plans));
  std::string chunks;
  for (const Flat& flat : plans.classes.front().flats)
    chunks += std::to_string(flat.used.count()) + " of " + std::to_string(flat.elems.count()) + ", ";
  EXPECT_EQ(chunks, "35 of 36, 15 of 16, 3 of 4, ");
  EXPECT_THAT(to_text(plans.classes.front()), testing::HasSubstr(" unit chunk from parameters 0,2,3 partition flat "));
  // Whole chunks lie on owners unpadded.
  s.ownership = Ownership::rank;
  EXPECT_EQ(compiled(two_layers(), s).classes.front().flats[0].elems, Elems{35});
}

TEST(PlanWords, FrozenParametersBeginChunksOfTheirOwn) {
  Strategy s = zero(3, 2);
  s.unit = UnitKind::chunk;
  s.freeze = {"*.bias"};
  s.chunk_starts = {0, 1, 2};
  const PlanSet plans = compiled(two_layers(), s);
  ASSERT_TRUE(verify(plans));
  std::string chunks;
  for (const Unit& unit : plans.classes.front().units) {
    const Flat& flat = plans.classes.front().flats[static_cast<std::size_t>(unit.flats.front())];
    chunks += unit.name + " of " + std::to_string(flat.elems.count()) + ", ";
  }
  EXPECT_EQ(chunks, "chunk 0 of 30, chunk 1 of 16, frozen chunk 0 of 8, ");
}

// One size is the special case: but for the strategy's line, the plans are one.
TEST(PlanWords, ChunksOfTheirOwnSizesThatAreEqualMakeThePlanOfThatSize) {
  const ModelPtr model = model_from(R"({"model_type": "mlp", "sizes": [4, 4, 4, 8], "bias": false})");
  for (const std::int32_t stage : {0, 1, 2, 3}) {
    Strategy s = zero(stage, 2, 2, 1);
    s.unit = UnitKind::chunk;
    const auto below_the_strategy = [&] {
      const std::string text = to_text(compiled(model, s).classes.front());
      return text.substr(text.find('\n'));
    };
    s.chunk_elems = Elems{32};
    const std::string of_one_size = below_the_strategy();
    s.chunk_starts = {0, 2};  // 4x4 and 4x4, 4x8
    EXPECT_EQ(below_the_strategy(), of_one_size) << stage;
    s.chunk_starts = {0, 1, 2};
    EXPECT_NE(below_the_strategy(), of_one_size) << stage;
  }
}

TEST(PlanWords, ChunksGatheredForARecomputationStayThroughThatBlocksBackward) {
  Strategy s = zero(3, 2);
  s.sequence = 4;
  s.unit = UnitKind::chunk;
  s.chunk_elems = Elems{300};  // several chunks a block, some across blocks
  s.recompute = Recompute::block;
  const PlanSet plans = compiled(small_gpt2(), s);
  ASSERT_TRUE(verify(plans));
  const Plan& plan = plans.classes.front();
  const std::vector<Op>& ops = plan.find(Phase::steady_step)->ops;
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<std::size_t, std::size_t>> uses;  // (block, unit)
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].block < 0 || (ops[i].part != Part::recompute && ops[i].part != Part::backward)) continue;
    for (const Operand& o : ops[i].operands) {
      if (plan.buffer(o.buffer).category != Category::gathered) continue;
      auto& [first, last] = uses.try_emplace({ops[i].block, plan.buffer(o.buffer).unit.value}, i, i).first->second;
      last = i;
    }
  }
  EXPECT_GE(uses.size(), 8U);
  for (const auto& [key, range] : uses)
    for (std::size_t i = range.first; i < range.second; ++i)
      if (const auto* call = std::get_if<Communicate>(&ops[i].action); call != nullptr && ops[i].part == Part::gather) {
        EXPECT_NE(call->unit.value, key.second) << "gathered again within block " << key.first;
      }
}

TEST(PlanWords, LogitsThatBecameTheirGradientAreNotMadeAgain) {
  const ModelPtr classifier = model_from(R"({"model_type": "mlp", "sizes": [4, 4, 4], "loss": "cross_entropy"})");
  Strategy s = zero(0, 1);
  s.recompute = Recompute::block;
  EXPECT_THAT(words_of(classifier, s), Not(HasSubstr("again")));
}

TEST(PlanWords, WholeParametersGoToTheirOwnersAndComeBackByBroadcast) {
  Strategy s = zero(1, 2);
  s.partition = Partition::parameter;
  const PlanSet plans = compiled(two_layers(), s);
  ASSERT_TRUE(verify(plans));
  // 30 elements to rank 0; then 15, 5 and 3 to rank 1.
  const std::string steps_of_rank_0 = only(words(plans.of_rank(0)), {"step", "refresh"});
  const std::string steps_of_rank_1 = only(words(plans.of_rank(1)), {"step", "refresh"});
  EXPECT_EQ(steps_of_rank_0, "step 0.weight | refresh 0.weight | refresh 0.bias | refresh 1.weight | refresh 1.bias");
  EXPECT_EQ(steps_of_rank_1,
            "refresh 0.weight | step 0.bias | refresh 0.bias | step 1.weight | refresh 1.weight | step 1.bias | "
            "refresh 1.bias");
}

TEST(PlanWords, UnitsGroupParameters) {
  const auto units = [](UnitKind kind) {
    Strategy s = zero(0, 2);
    s.unit = kind;
    s.sequence = 4;
    s.chunk_elems = Elems{900};
    std::string text;
    const PlanSet plans = compiled(small_gpt2(), s);
    for (const Unit& unit : plans.classes.front().units)
      if (text.size() < 150) text += unit.name + ' ' + std::to_string(unit.flats.size()) + " | ";
    return text;
  };
  EXPECT_THAT(units(UnitKind::tensor), HasSubstr("transformer.wte.weight 1 | transformer.wpe.weight 1 | "
                                                 "transformer.h.0.ln_1.weight 1 | transformer.h.0.ln_1.bias 1 | "));
  EXPECT_THAT(units(UnitKind::bucket), HasSubstr("transformer.wte 1 | transformer.wpe 1 | transformer.h.0.ln_1 2 | "));
  EXPECT_EQ(units(UnitKind::module),
            "transformer.wte 1 | transformer.wpe 1 | block 0 1 | block 1 1 | "
            "transformer.ln_f 1 | ");
  EXPECT_THAT(units(UnitKind::chunk), HasSubstr("chunk 0 1 | chunk 1 1 | "));
}

TEST(PlanWords, PassesPrintWhatTheyAdd) {
  const Strategy s = zero(3, 2);
  EXPECT_EQ(words(compiled_until(two_layers(), s, "build")), "0 | 1 | loss");
  EXPECT_EQ(words(compiled_until(two_layers(), s, "differentiate")),
            "0 | 1 | loss | loss backward | 1 backward_input | 1 backward_weight | 0 backward_weight");
  EXPECT_EQ(words(compiled_until(two_layers(), s, "shard")),
            "load batch | gather block 0 | 0 | gather block 1 | 1 | loss | loss backward | 1 backward_input | "
            "1 backward_weight | reduce block 1 | 0 backward_weight | reduce block 0");
  const Result<Plan> unknown = compile_until(two_layers(), s, "sharding");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::usage);
}

TEST(PlanWords, ContradictionsAreRefusedWithTheSmallestChange) {
  const auto refused = [](Strategy s) {
    const Result<PlanSet> plans = compile(two_layers(), s);
    if (plans) return std::string("accepted");
    EXPECT_EQ(plans.error().code, Errc::contradiction);
    return plans.error().help;
  };
  Strategy batch = zero(0, 2);
  batch.global_batch = 5;
  EXPECT_EQ(refused(batch), "--global-batch 4");
  Strategy chunk = zero(3, 4);
  chunk.unit = UnitKind::chunk;
  chunk.chunk_elems = Elems{6};
  EXPECT_EQ(refused(chunk), "--chunk-size 8");
  chunk.chunk_starts = {1};
  EXPECT_EQ(refused(chunk), "--chunk-size variable") << "the first parameter is in no chunk";
  chunk.chunk_starts = {0, 4};
  EXPECT_EQ(refused(chunk), "--chunk-size variable") << "there are four parameters";
  chunk.chunk_starts = {0, 2, 2};
  EXPECT_EQ(refused(chunk), "--chunk-size variable") << "twice";
  chunk.chunk_starts = {0, 2};
  chunk.freeze = {"*.bias"};
  EXPECT_EQ(refused(chunk), "--chunk-size variable") << "the first frozen parameter is in no chunk";
  chunk.freeze = {};
  chunk.unit = UnitKind::module;
  EXPECT_EQ(refused(chunk), "--chunk-size variable") << "no chunks";
  Strategy partition = zero(2, 2);
  partition.partition = Partition::parameter;
  EXPECT_EQ(refused(partition), "--stage 1");
  Strategy sequence = zero(0, 1);
  sequence.sequence = 3;
  EXPECT_EQ(refused(sequence), "leave --sequence out");
}

}  // namespace
}  // namespace shard::plan
