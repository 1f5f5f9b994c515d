// Has every kind of op one name, and does its work count what its time grows with?
#include "sim/ir/op_class.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "sim/compile/compile.h"
#include "sim/model/config.h"

namespace shard::plan {
namespace {

TEST(OpClass, EveryClassHasOneNameThatFindsIt) {
  std::set<std::string> names;
  for (OpClass each; each.index < kOpClasses; ++each.index) {
    const std::string name = to_string(each);
    EXPECT_TRUE(names.insert(name).second) << name;
    ASSERT_TRUE(op_class(name)) << name;
    EXPECT_EQ(*op_class(name), each) << name;
  }
  EXPECT_FALSE(op_class("linear"));
  EXPECT_FALSE(op_class(""));
}

/// 16 tokens, 32 columns, 64 words, on two ranks that reduce gradients whole.
PlanSet plans() {
  constexpr std::string_view kTiny =
      R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 8, "n_embd": 32, "n_layer": 1, "n_head": 2})";
  const auto configured = model::parse_config(kTiny, "tiny", "tiny");
  EXPECT_TRUE(configured);
  const auto model = std::make_shared<const model::Model>(configured->model);
  const auto compiled = compile(model, {.world_size = 2, .micro_batch = 2, .global_batch = 4, .sequence = 8});
  EXPECT_TRUE(compiled);
  return *compiled;
}

const Op& find(const Plan& plan, std::string_view name) {
  for (const Op& op : plan.find(Phase::steady_step)->ops)
    if (op.name == name) return op;
  ADD_FAILURE() << "no op " << name;
  return plan.find(Phase::steady_step)->ops.front();
}

TEST(OpWork, OfAProductAreItsFlopsItsWeightsAndTheRest) {
  const PlanSet set = plans();
  const Plan& plan = set.classes.front();
  const Op& forward = find(plan, "transformer.h.0.mlp.c_fc");
  EXPECT_EQ(to_string(class_of(forward)), "linear forward");
  const OpWork work = work_of(plan, forward);
  EXPECT_EQ(work.flops, 2.0 * 16 * 32 * 128 + 16 * 128);  // and the bias
  EXPECT_EQ(work.weight_bytes, 4.0 * (32 * 128 + 128));
  EXPECT_EQ(work.bytes, 4.0 * (16 * 32 + 16 * 128));
}

TEST(OpWork, OfATableAreTheRowsThatTokensName) {
  const PlanSet set = plans();
  const Plan& plan = set.classes.front();
  EXPECT_EQ(work_of(plan, find(plan, "transformer.wte")).weight_bytes, 4.0 * 16 * 32);
}

TEST(OpWork, OfACollectiveIsWhatARankTakesFromOthers) {
  const PlanSet set = plans();
  const Plan& plan = set.classes.front();
  double taken = 0;
  double full = 0;
  for (const Op& op : plan.find(Phase::steady_step)->ops) {
    const auto* call = std::get_if<Communicate>(&op.action);
    if (call == nullptr || call->kind != Collective::all_reduce) continue;
    EXPECT_EQ(to_string(class_of(op)), "all_reduce");
    taken += work_of(plan, op).bytes;
    for (const Segment& s : call->segments)
      full += static_cast<double>(op.operands[static_cast<std::size_t>(s.full_operand)].bytes);
  }
  EXPECT_GT(full, 0);
  EXPECT_EQ(taken, full);  // two of two: 2 (n - 1) / n is one
}

}  // namespace
}  // namespace shard::plan
