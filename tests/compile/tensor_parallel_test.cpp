// Are plans of ranks that share a model right, for every layout, model and way to shard what each of them has?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "sim/check/verify.h"
#include "sim/ir/effects.h"
#include "sim/strategy/checks.h"
#include "tests/compile/random_cases.h"

namespace shard::plan {
namespace {

using model::TensorLayout;
using testing::HasSubstr;

/// A random model that `degree` ranks can share, in both layouts where it is no mlp.
ModelPtr random_model(RandomCases& random, std::int64_t degree) {
  const auto field = [](const char* key, std::int64_t value) {
    return std::string(", \"") + key + "\": " + std::to_string(value);
  };
  const auto choice = [&](const char* key) {
    return std::string(", \"") + key + "\": " + (random.flag() ? "true" : "false");
  };
  const std::int64_t family = random.upto(3);
  if (family == 1) {
    const std::int64_t heads = degree * random.upto(2);
    return model_from(R"({"model_type": "gpt2")" + field("n_head", heads) + field("n_embd", heads * random.upto(5)) +
                      field("n_layer", random.upto(3)) + field("n_inner", degree * random.upto(6)) +
                      field("vocab_size", random.upto(30)) + field("n_positions", 8) + choice("tie_word_embeddings") +
                      "}");
  }
  if (family == 2) {
    const std::int64_t kv = degree * random.upto(2);
    const std::int64_t heads = kv * random.upto(2);
    const std::int64_t head_dim = 2 * random.upto(3);
    return model_from(R"({"model_type": "llama")" + field("num_attention_heads", heads) +
                      field("num_key_value_heads", kv) + field("hidden_size", heads * head_dim) +
                      field("intermediate_size", degree * random.upto(6)) + field("num_hidden_layers", random.upto(3)) +
                      field("vocab_size", random.upto(30)) + field("max_position_embeddings", 8) +
                      choice("tie_word_embeddings") + choice("attention_bias") + choice("mlp_bias") + "}");
  }
  std::string sizes = std::to_string(random.upto(12));
  for (std::int64_t i = 1 + random.upto(4); i > 0; --i) sizes += ", " + std::to_string(degree * random.upto(4));
  return model_from(R"({"model_type": "mlp", "sizes": [)" + sizes + R"(], "bias": )" +
                    (random.flag() ? "true" : "false") + R"(, "loss": ")" + (random.flag() ? "mse" : "cross_entropy") +
                    "\"}");
}

Strategy random_strategy(RandomCases& random, const model::Model& model, std::int32_t degree) {
  Strategy s = random.strategy(model);
  s.tensor_parallel = degree;
  s.world_size *= degree;
  s.tensor_layout =
      model.family == model::Family::mlp || random.flag() ? TensorLayout::megatron : TensorLayout::colossalai;
  return s;
}

TEST(TensorParallel, EveryPlanPassesTheVerifier) {
  for (unsigned seed = 1; seed <= 120; ++seed) {
    RandomCases random(seed);
    const auto degree = static_cast<std::int32_t>(1 + random.upto(3));
    const ModelPtr model = random_model(random, degree);
    const Strategy strategy = random_strategy(random, *model, degree);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_string(strategy));
    const PlanSet plans = compiled(model, strategy);
    const Result<void> ok = verify(plans);
    ASSERT_TRUE(ok) << to_string(ok.error());
  }
}

Strategy split(std::int32_t degree, TensorLayout layout) {
  return {.world_size = degree,
          .micro_batch = 1,
          .global_batch = 1,
          .sequence = 4,
          .tensor_parallel = degree,
          .tensor_layout = layout};
}

/// Calls of the tensor group in a step, by kind.
std::pair<int, int> exchanges(const Plan& plan) {
  std::pair<int, int> sums_and_gathers;
  for (const Op& op : plan.find(Phase::steady_step)->ops)
    if (const auto* call = std::get_if<Communicate>(&op.action); call != nullptr && call->group == Group::tensor)
      ++(call->kind == Collective::all_reduce ? sums_and_gathers.first : sums_and_gathers.second);
  return sums_and_gathers;
}

// Megatron-LM's paper: two sums each way per block; and one each way for the vocabulary, and the loss's statistics.
TEST(TensorParallel, MegatronSumsTwiceEachWayPerBlock) {
  const PlanSet plans = compiled(small_gpt2(), split(2, TensorLayout::megatron));
  EXPECT_EQ(plans.classes.size(), 1U) << "ranks that share a model have one plan";
  EXPECT_EQ(exchanges(plans.classes[0]), (std::pair{2 * 4 + 2, 1}));
}

// Embedding, c_attn and attention's c_proj gathered, mlp.c_proj and the logits summed; backward: the three inputs of
// column products summed, that of the logits gathered.
TEST(TensorParallel, ColossalAiGathersAfterEveryColumnProduct) {
  const PlanSet plans = compiled(small_gpt2(), split(2, TensorLayout::colossalai));
  EXPECT_EQ(plans.classes.size(), 1U);
  EXPECT_EQ(exchanges(plans.classes[0]), (std::pair{2 * (1 + 3) + 1, 1 + 2 * 2 + 1}));
}

TEST(TensorParallel, APartOfTheModelTakesAPartOfTheWork) {
  const auto work = [](const Plan& plan) {
    double products = 0;
    for (const Op& op : plan.find(Phase::steady_step)->ops)
      if (const auto* c = std::get_if<Compute>(&op.action); c != nullptr && c->kind == model::OperatorKind::linear)
        products += effects(plan, op).flops.count();
    return products;
  };
  const ModelPtr even = model_from(
      R"({"model_type": "llama", "vocab_size": 12, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 8})");
  const double whole = work(compiled(even, split(1, TensorLayout::megatron)).classes[0]);
  EXPECT_EQ(2 * work(compiled(even, split(2, TensorLayout::megatron)).classes[0]), whole);
}

struct Refused {
  const char* name;
  ModelPtr (*model)();
  Strategy strategy;
  const char* what;
  const char* help;
};

Strategy of_world(std::int32_t world, std::int32_t degree, TensorLayout layout = TensorLayout::megatron) {
  Strategy s = split(degree, layout);
  s.world_size = world;
  s.global_batch = 8;
  return s;
}

TEST(TensorParallel, WhatDoesNotDivideIsRefused) {
  const Refused cases[] = {
      {"world", small_gpt2, of_world(6, 4), "--tensor-parallel 4 does not divide --world-size 6",
       "--tensor-parallel 2"},
      {"heads", small_gpt2, of_world(4, 4), "--tensor-parallel 4 does not divide the 2 attention heads",
       "--tensor-parallel 2"},
      {"kv heads", small_llama, of_world(4, 4), "--tensor-parallel 4 does not divide the 2 key and value heads",
       "--tensor-parallel 2"},
      {"columns", small_llama, of_world(8, 8, TensorLayout::colossalai),
       "--tensor-parallel 8 does not divide the 4 columns of the keys", "--tensor-parallel 4"},
      {"one layer", [] { return model_from(R"({"model_type": "mlp", "sizes": [4, 4]})"); }, of_world(2, 2),
       "--tensor-parallel 2 splits pairs of layers", "--tensor-parallel 1"},
      {"mlp", two_layers, of_world(5, 5, TensorLayout::colossalai), "--tensor-parallel-layout colossalai",
       "--tensor-parallel-layout megatron"},
      {"width", two_layers, of_world(2, 2), "--tensor-parallel 2 does not divide the width 5 of layer 0",
       "--tensor-parallel 1"},
  };
  for (const Refused& c : cases) {
    Strategy s = c.strategy;
    if (c.model()->family == model::Family::mlp) s.sequence = 1;
    const Result<void> result = check(*c.model(), s);
    ASSERT_FALSE(result) << c.name;
    EXPECT_EQ(result.error().code, Errc::contradiction) << c.name;
    EXPECT_THAT(result.error().what, HasSubstr(c.what)) << c.name;
    EXPECT_EQ(result.error().help, c.help) << c.name;
  }
}

}  // namespace
}  // namespace shard::plan
