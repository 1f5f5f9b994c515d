// Do the rules of Megatron-LM core reach what it was seen to take, and what its paper says of activations?
#include <gtest/gtest.h>

#include "sim/like/frameworks/framework.h"
#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

std::shared_ptr<const model::Model> gpt(std::int64_t layers, std::int64_t feed_forward) {
  return std::make_shared<const model::Model>(test::model_of(
      R"({"model_type": "gpt2", "vocab_size": 1024, "n_embd": 256, "n_head": 4, "n_positions": 256,
          "tie_word_embeddings": false, "n_layer": )" +
      std::to_string(layers) + R"(, "n_inner": )" + std::to_string(feed_forward) + "}"));
}

/// Two steps of megatron-core 0.16.1 under PyTorch 2.11 on the stand-in GPU of an H100: GPTModel of
/// get_gpt_layer_local_spec() in bf16, two sequences of 256 tokens, gradients in fp32, AdamW of torch.optim.
struct Seen {
  const char* name;
  std::int64_t layers, feed_forward;
  std::int32_t stage;
  float dropout;
  std::int32_t tensor;
  std::int64_t allocated, reserved;
};
constexpr Seen kSeen[] = {
    {"Plain", 2, 1024, 0, 0, 1, 121'484'288, 134'217'728},
    {"DistributedOptimizer", 2, 1024, 1, 0, 1, 121'484'288, 130'023'424},
    {"Dropout", 2, 1024, 0, 0.1f, 1, 125'285'376, 138'412'032},
    {"ThreeLayersNarrow", 3, 768, 0, 0, 1, 132'286'464, 144'703'488},
    {"TensorParallel", 2, 1024, 0, 0, 2, 96'291'328, 115'343'360},
};

class MegatronSeen : public ::testing::TestWithParam<Seen> {};

TEST_P(MegatronSeen, PeaksAreEqual) {
  const Seen& seen = GetParam();
  plan::Strategy s;
  s.micro_batch = s.global_batch = 2;
  s.sequence = 256;
  s.precision = plan::Precision::bf16;
  s.world_size = s.tensor_parallel = seen.tensor;
  s.stage = seen.stage;
  s.dropout = seen.dropout;
  EagerOptions options{
      .machine = {.compute_capability = 90, .multiprocessors = 132, .threads_per_multiprocessor = 2048}};
  options.framework = eager::Framework::megatron;
  const Result<LikeResult> result = simulate_eager(gpt(seen.layers, seen.feed_forward), s, options);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->peak_allocated().count(), seen.allocated);
  EXPECT_EQ(result->peak_reserved().count(), seen.reserved);
}

INSTANTIATE_TEST_SUITE_P(Runs, MegatronSeen, ::testing::ValuesIn(kSeen),
                         [](const auto& each) { return std::string(each.param.name); });

/// What forward leaves for backward, in fp16 with dropout.
std::int64_t activations(std::int64_t layers, const eager::MegatronOptions& megatron, std::int64_t batch,
                         std::int64_t sequence) {
  auto model = std::make_shared<model::Model>(*gpt(layers, 1024));
  model->dropout = 0.1F;
  const eager::Run run = eager::run(
      model,
      {.code = eager::Code::megatron,
       .program = {.batch = batch, .sequence = sequence, .precision = eager::Scalar::f16},
       .sharding = {.framework = eager::Framework::megatron, .make = framework_of(eager::Framework::megatron)->make},
       .megatron = megatron});
  const Program& program = run.program;
  std::int64_t live = 0;
  for (const Step& step : program.steps) {
    if (step.kind == StepKind::begin && program.operators[static_cast<std::size_t>(step.at)].part == Part::backward)
      return live;
    if (step.kind != StepKind::take && step.kind != StepKind::give_back) continue;
    const Allocation& a = program.allocation({step.at});
    if (a.category == Category::activation) live += step.kind == StepKind::take ? a.bytes.count() : -a.bytes.count();
  }
  ADD_FAILURE() << "no backward";
  return 0;
}

/// Reducing Activation Recomputation in Large Transformer Models (arXiv:2205.05198), activations of a layer in bytes,
/// and the two fp32 figures a token of two norms, which it neglects (section 4.1).
class KorthikantiActivations : public ::testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {
 protected:
  const std::int64_t b = GetParam().first, s = GetParam().second, h = 256, a = 4;
  const std::int64_t statistics = 16 * s * b;
  [[nodiscard]] std::int64_t of_a_layer(const eager::MegatronOptions& megatron) const {
    return activations(3, megatron, b, s) - activations(2, megatron, b, s);
  }
};

TEST_P(KorthikantiActivations, Equation1WithoutParallelism) {
  EXPECT_EQ(of_a_layer({}), s * b * h * 34 + 5 * a * s * s * b + statistics);
}

TEST_P(KorthikantiActivations, Equation2WithTensorParallelism) {
  for (const std::int32_t t : {2, 4})
    EXPECT_EQ(of_a_layer({.tensor = t}), s * b * h * 10 + (s * b * h * 24 + 5 * a * s * s * b) / t + statistics);
}

TEST_P(KorthikantiActivations, Equation4WithSequenceParallelismToo) {
  for (const std::int32_t t : {2, 4})
    EXPECT_EQ(of_a_layer({.tensor = t, .sequence_parallel = true}),
              (s * b * h * 34 + 5 * a * s * s * b + statistics) / t);
}

INSTANTIATE_TEST_SUITE_P(Sizes, KorthikantiActivations,
                         ::testing::Values(std::pair{1, 64}, std::pair{2, 256}, std::pair{3, 128}));

TEST(MegatronRules, WhatIsNotModelledIsRefused) {
  plan::Strategy s;
  s.micro_batch = s.global_batch = 2;
  s.sequence = 256;
  s.precision = plan::Precision::bf16;
  EagerOptions options;
  options.framework = eager::Framework::megatron;
  plan::Strategy recomputed = s, wide = s, third = s;
  recomputed.recompute = plan::Recompute::block;
  wide.precision = plan::Precision::fp32;
  third.stage = 3;
  for (const plan::Strategy& strategy : {recomputed, wide, third}) {
    const Result<LikeResult> refused = simulate_eager(gpt(2, 1024), strategy, options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::contradiction);
  }
  options.sequence_parallel = true;
  EXPECT_FALSE(simulate_eager(gpt(2, 1024), s, options));
}

}  // namespace
}  // namespace shard::like
