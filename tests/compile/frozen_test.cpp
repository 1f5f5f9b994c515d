// What do plans leave out for frozen parameters, and what stays?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/check/verify.h"
#include "sim/strategy/checks.h"
#include "tests/compile/support.h"

namespace shard::plan {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// Untied, so that nothing is left to do for what lies under block 1.
ModelPtr untied_gpt2() {
  return model_from(
      R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2,
          "tie_word_embeddings": false})");
}

Strategy freezing(std::vector<std::string> patterns, std::int32_t stage = 0, std::int32_t world = 2) {
  return {.world_size = world,
          .stage = stage,
          .micro_batch = 1,
          .global_batch = 2 * world,
          .sequence = 4,
          .freeze = std::move(patterns)};
}
const std::vector<std::string> kUnderBlock1{"transformer.wte.weight", "transformer.wpe.weight", "transformer.h.0.*"};

std::vector<std::string> backward_ops(const Plan& plan) {
  std::vector<std::string> names;
  for (const Op& op : plan.find(Phase::steady_step)->ops)
    if (op.part == Part::backward && op.micro_step == 0) names.emplace_back(op.name);
  return names;
}

std::int64_t bytes_of_category(const Plan& plan, Category category) {
  std::set<std::int32_t> touched;
  for (const PhaseOps& phase : plan.phases)
    for (const Op& op : phase.ops)
      for (const Operand& o : op.operands)
        if (plan.buffer(o.buffer).category == category) touched.insert(o.buffer.value);
  std::int64_t bytes = 0;
  for (std::int32_t b : touched) bytes += plan.buffer(BufferId{b}).bytes.count();
  return bytes;
}

const Op* op_named(const Plan& plan, std::string_view name) {
  for (const Op& op : plan.find(Phase::steady_step)->ops)
    if (op.name == name) return &op;
  return nullptr;
}

TEST(Frozen, BackwardStopsWhereNothingTrainedLiesBelow) {
  const PlanSet plans = compiled(untied_gpt2(), freezing(kUnderBlock1));
  const Plan& plan = plans.classes.front();
  const std::vector<std::string> ops = backward_ops(plan);
  for (const std::string& name : ops) {
    EXPECT_THAT(name, Not(HasSubstr("h.0."))) << name;
    EXPECT_THAT(name, Not(HasSubstr("wte"))) << name;
  }
  // The first norm of block 1 makes the gradients of its weight and bias alone.
  EXPECT_EQ(ops.back(), "transformer.h.1.ln_1 backward");
  EXPECT_EQ(op_named(plan, ops.back())->operands.size(), 5U + 2U);
  // Of block 0 nothing is kept but its result, which that norm reads.
  for (const Buffer& buffer : plan.buffers) {
    if (!buffer.name.starts_with("transformer.h.0.") || buffer.category != Category::activation) continue;
    EXPECT_EQ(buffer.name, "transformer.h.0.mlp.residual") << "is kept, and no backward reads it";
  }
}

TEST(Frozen, AProductKeepsTheGradientOfItsInputAndLosesThatOfItsWeight) {
  const Strategy s = freezing({"transformer.h.1.attn.c_attn.weight", "transformer.h.1.mlp.c_fc.*"});
  const Plan plan = compiled(small_gpt2(), s).classes.front();
  // The bias alone: the gradient of the result, summed over rows.
  const Op* bias = op_named(plan, "transformer.h.1.attn.c_attn backward_weight");
  ASSERT_NE(bias, nullptr);
  EXPECT_EQ(bias->operands.size(), 2U);
  EXPECT_THAT(backward_ops(plan), Contains("transformer.h.1.attn.c_attn backward_input"));
  EXPECT_THAT(backward_ops(plan), Contains("transformer.h.1.mlp.c_fc backward_input"));
  EXPECT_THAT(backward_ops(plan), Not(Contains("transformer.h.1.mlp.c_fc backward_weight")));
}

TEST(Frozen, ATiedWeightIsFrozenInAllItsUses) {
  const Plan plan = compiled(small_gpt2(), freezing({"transformer.wte.weight"})).classes.front();
  EXPECT_THAT(backward_ops(plan), Not(Contains(HasSubstr("wte"))));
  EXPECT_THAT(backward_ops(plan), Not(Contains("lm_head backward_weight")));
  EXPECT_THAT(backward_ops(plan), Contains("lm_head backward_input"));
}

TEST(Frozen, NoGradientMasterOrStateIsPlannedForThem) {
  const ModelPtr model = small_gpt2();
  std::int64_t all = 0;
  std::int64_t trained = 0;
  for (std::size_t p = 0; p < model->parameters.size(); ++p) {
    const std::int64_t n = model->parameters[p].elems.count();
    all += n;
    if (!model->parameters[p].name.starts_with("transformer.h.0.")) trained += n;
  }
  Strategy s = freezing({"transformer.h.0.*"}, 0, 1);
  s.precision = Precision::bf16;
  const Plan plan = compiled(model, s).classes.front();
  const auto counts = static_cast<std::int64_t>(4 * model->parameters.size());
  EXPECT_EQ(bytes_of_category(plan, Category::parameter), 2 * all);
  EXPECT_EQ(bytes_of_category(plan, Category::master_parameter), 4 * trained);
  EXPECT_EQ(bytes_of_category(plan, Category::optimizer_state), 8 * trained + counts);
  EXPECT_EQ(bytes_of_category(plan, Category::gradient), 2 * 2 * trained);  // two slots of the tree
}

TEST(Frozen, AUnitIsGatheredInOneCallAndReducedWithoutThem) {
  Strategy s = freezing({"transformer.h.1.attn.*"}, 3);
  const Plan plan = compiled(small_gpt2(), s).classes.front();
  const Op* gather = op_named(plan, "gather block 1");
  const Op* reduce = op_named(plan, "reduce block 1");
  ASSERT_NE(gather, nullptr);
  ASSERT_NE(reduce, nullptr);
  EXPECT_EQ(std::get<Communicate>(gather->action).segments.size(), 2U);
  EXPECT_EQ(std::get<Communicate>(reduce->action).segments.size(), 1U);
  s.stage = 2;
  const Plan refreshed = compiled(small_gpt2(), s).classes.front();
  EXPECT_EQ(std::get<Communicate>(op_named(refreshed, "refresh block 1")->action).segments.size(), 1U);
}

TEST(Frozen, ChunksHoldFrozenOrTrainedParameters) {
  Strategy s = freezing({"*.bias"}, 3);
  s.unit = UnitKind::chunk;
  s.chunk_elems = Elems{64};
  const Plan plan = compiled(small_gpt2(), s).classes.front();
  for (const Flat& flat : plan.flats)
    for (const Flat::Item& item : flat.items)
      EXPECT_EQ(plan.model->parameters[static_cast<std::size_t>(item.param.value)].name.ends_with(".bias"),
                flat.frozen);
  EXPECT_EQ(plan.units.back().name, "frozen chunk 3");
}

TEST(Frozen, NeverNeedsMoreMemory) {
  for (std::int32_t stage = 0; stage < 4; ++stage)
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (const Recompute recompute : {Recompute::none, Recompute::block}) {
        Strategy s = freezing({}, stage, 4);
        s.precision = precision;
        s.recompute = recompute;
        const std::int64_t whole = compiled(untied_gpt2(), s).classes.front().arena_bytes[0].count();
        s.freeze = kUnderBlock1;
        EXPECT_LT(compiled(untied_gpt2(), s).classes.front().arena_bytes[0].count(), whole) << to_string(s);
      }
}

TEST(Frozen, PatternsAreCheckedAgainstTheModel) {
  EXPECT_FALSE(check(*small_gpt2(), freezing({"lm_head.weight"})));  // tied: it has no name of its own
  EXPECT_TRUE(check(*untied_gpt2(), freezing({"lm_head.weight"})));
  EXPECT_FALSE(check(*small_gpt2(), freezing({"*"})));
}

}  // namespace
}  // namespace shard::plan
