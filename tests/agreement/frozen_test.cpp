// Do frozen parameters keep their bits, do the others get the gradients that they would get anyway, and do strategies
// agree about them?
#include <gtest/gtest.h>

#include <fnmatch.h>
#include <cstddef>
#include <map>

#include "tests/agreement/matrix.h"
#include "tests/agreement/trained.h"
#include "tests/daily.h"
#include "tests/model/tiny_models.h"

namespace shard {
namespace {

ModelPtr frozen_mlp() {
  return tiny_model(R"({"model_type": "mlp", "sizes": [6, 8, 5, 7, 4]})");
}

bool matches(const Patterns& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& p) { return fnmatch(p.c_str(), name.c_str(), 0) == 0; });
}

void expect_only_others_change(const ModelPtr& model, const Patterns& freeze) {
  for (const plan::Precision precision : {plan::Precision::fp32, plan::Precision::bf16})
    for (const plan::Recompute recompute : kRecompute) {
      const plan::Strategy s{.micro_batch = 2,
                             .global_batch = 4,
                             .sequence = model->family == model::Family::mlp ? 1 : 8,
                             .recompute = recompute,
                             .optimizer = plan::OptimizerKind::adamw,
                             .precision = precision};
      const std::string what = model->name + " without " + freeze.front() + ' ' + to_string(s);
      const Trained born = trained(model, s, {}, 1, 0);
      const Trained all = trained(model, s, {}, 1);
      const Trained one = trained(model, s, freeze, 1);
      const Trained three = trained(model, s, freeze, 3);
      EXPECT_EQ(one.losses, all.losses) << what;
      for (const auto& [name, bytes] : one.parameters) {
        if (matches(freeze, name)) {
          EXPECT_EQ(bytes, born.parameters.at(name)) << what << ": " << name;
          EXPECT_EQ(three.parameters.at(name), born.parameters.at(name)) << what << ": " << name;
        } else {
          EXPECT_EQ(bytes, all.parameters.at(name)) << what << ": " << name;
          EXPECT_NE(three.parameters.at(name), bytes) << what << ": " << name;
        }
      }
    }
}

TEST(Frozen, OthersTakeTheStepThatTheyWouldTakeAnyway) {
  for (const Patterns& freeze :
       {Patterns{"transformer.w?e.weight", "transformer.h.0.*"}, Patterns{"transformer.wte.weight"}, Patterns{"*.bias"},
        Patterns{"*.weight"}, Patterns{"transformer.w*", "transformer.h.0.ln_1.weight", "transformer.h.1.attn.*"}})
    expect_only_others_change(tiny_gpt2(true), freeze);
  expect_only_others_change(tiny_gpt2(false),
                            {"transformer.w?e.weight", "*ln_1.*", "transformer.h.?.attn.c_attn.weight"});
}

TEST(Frozen, OthersTakeTheStepThatTheyWouldTakeAnywayInLlama) {
  for (const Patterns& freeze : {Patterns{"*norm*"}, Patterns{"*.bias"}, Patterns{"*.weight"},
                                 Patterns{"model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                                          "*.0.self_attn.q_proj.*", "*.0.self_attn.v_proj.*", "*gate_proj*"}})
    expect_only_others_change(tiny_llama(false), freeze);
}

TEST(Frozen, OthersTakeTheStepThatTheyWouldTakeAnywayInAnMlp) {
  const ModelPtr mlp = frozen_mlp();
  for (const Patterns& freeze : {Patterns{mlp->parameters.front().name}, Patterns{"*.bias"}, Patterns{"*.weight"}})
    expect_only_others_change(mlp, freeze);
}

const Subject kGpt2{.model = "gpt2-nano",
                    .global_batch = 8,
                    .sequence = 8,
                    .chunk = Elems{100'000},
                    .steps = 2,
                    .freeze = {"transformer.w*", "transformer.h.0.*", "*.c_fc.weight"}};
const Subject kLlama{.model = TEST_DATA "/data/models/llama-nano.json",
                     .global_batch = 8,
                     .sequence = 8,
                     .chunk = Elems{30'000},
                     .steps = 2,
                     .worlds = {1, 2, 4, 8},
                     .precision = plan::Precision::bf16,
                     .freeze = {"*norm*", "model.embed_tokens.weight", "model.layers.1.self_attn.*"}};

TEST(Frozen, StrategiesAgree) {
  expect_agreement(kGpt2, daily::part_of(pairwise(levels(kGpt2)), 3));
}

TEST(Frozen, StrategiesAgreeIn16Bits) {
  expect_agreement(kLlama, daily::part_of(pairwise(levels(kLlama)), 3));
  Subject widened = kLlama;
  widened.precision = plan::Precision::fp16;
  widened.fp32_reduce_scatter = true;
  widened.worlds = {1, 4};
  expect_agreement(
      widened,
      {{0, 0, 0, 0, 0, 0, 0, 0}, {1, 3, 2, 1, 1, 0, 0, 1}, {1, 2, 3, 2, 0, 1, 1, 2}, {1, 1, 1, 0, 0, 0, 0, 1}});
}

// The norm is that of the trained parameters' gradients; a scaler looks at them alone.
TEST(Frozen, ClippedStepsAgree) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  for (const plan::Precision precision : {plan::Precision::fp32, plan::Precision::fp16}) {
    Subject subject = kGpt2;
    subject.precision = precision;
    std::string sha;
    for (const std::vector<std::size_t>& row : std::vector<std::vector<std::size_t>>{
             {0, 0, 2, 0, 0, 0, 0, 0}, {1, 1, 0, 1, 1, 0, 0, 1}, {1, 2, 3, 2, 1, 1, 0, 2}, {2, 3, 2, 0, 2, 0, 1, 1}}) {
      plan::Strategy s = strategy_of(subject, row);
      s.clip_norm = true;
      const std::string what = to_string(s);
      const auto run = run_in_process(
          model, s,
          {.steps = 2, .scalars = {}, .knobs = {.max_norm = 0.5}, .seed = 7, .after_step = {}, .before_phase = {}});
      ASSERT_TRUE(run) << what << ": " << to_string(run.error());
      expect_as_planned(*run, 2, what);
      if (sha.empty()) sha = run->ranks[0].state_sha256;
      EXPECT_EQ(run->ranks[0].state_sha256, sha) << what;
    }
  }
}

// Whole parameters to ranks, and ranks that share a model.
TEST(Frozen, OtherWaysToDivideRunAsPlanned) {
  const auto model = load_model("gpt2-nano");
  ASSERT_TRUE(model);
  const auto sha_of = [&](const plan::Strategy& strategy) {
    const auto run =
        run_in_process(model, strategy, {.steps = 2, .scalars = {}, .seed = 7, .after_step = {}, .before_phase = {}});
    const std::string what = to_string(strategy);
    if (!run) {
      ADD_FAILURE() << what << ": " << to_string(run.error());
      return std::string();
    }
    expect_as_planned(*run, 2, what);
    return run->ranks[0].state_sha256;
  };
  plan::Strategy s{.world_size = 4,
                   .stage = 1,
                   .partition = plan::Partition::parameter,
                   .micro_batch = 1,
                   .global_batch = 8,
                   .sequence = 8,
                   .freeze = kGpt2.freeze};
  const std::string whole = sha_of(s);
  s.partition = plan::Partition::flat;
  s.transport = plan::Transport::messages;
  EXPECT_EQ(sha_of(s), whole);
  for (const model::TensorLayout layout : {model::TensorLayout::megatron, model::TensorLayout::colossalai}) {
    plan::Strategy shared = s;
    shared.transport = plan::Transport::shared;
    shared.tensor_parallel = 2;
    shared.tensor_layout = layout;
    std::string sha;
    for (shared.stage = 0; shared.stage < 4; ++shared.stage)
      for (shared.recompute = plan::Recompute::none; true; shared.recompute = plan::Recompute::block) {
        const std::string own = sha_of(shared);
        if (sha.empty()) sha = own;
        EXPECT_EQ(own, sha) << to_string(shared);
        if (shared.recompute == plan::Recompute::block) break;
      }
  }
}

}  // namespace
}  // namespace shard
