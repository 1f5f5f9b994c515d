// Do a framework's options come to the step that they describe, and is there no time where no laws are known?
#include <gtest/gtest.h>

#include "sim/cluster/read_cluster.h"
#include "sim/like/like_step.h"
#include "sim/model/read_model.h"

namespace shard::like {
namespace {

model::Model named(const char* name) {
  Result<model::Model> model = model::read_model(name);
  EXPECT_TRUE(model) << name;
  return model ? *std::move(model) : model::Model{};
}

cluster::Cluster h100() {
  Result<cluster::Cluster> c = cluster::read_cluster("h100-80gb-x8");
  EXPECT_TRUE(c);
  return *std::move(c);
}

plan::Strategy eight_ranks(std::int32_t stage) {
  plan::Strategy s;
  s.world_size = 8;
  s.stage = stage;
  s.sequence = 8192;
  s.global_batch = 8;
  s.precision = plan::Precision::bf16;
  s.device = plan::Device::cuda;
  return s;
}

double seconds(const model::Model& model, const plan::Strategy& s, const EagerOptions& o) {
  const Result<step::StepTime> time = eager_step_time(model, s, o, h100());
  EXPECT_TRUE(time) << to_string(time.error());
  return time ? time->seconds.count() : 0;
}

void expect_none(const model::Model& model, const plan::Strategy& s, const EagerOptions& o, const char* because) {
  const Result<step::StepTime> time = eager_step_time(model, s, o, h100());
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().code, Errc::contradiction);
  EXPECT_NE(time.error().what.find(because), std::string::npos) << time.error().what;
}

// torchtitan b5bcd76c, benchmarks/llama3_h100_202412_torchtitan.md: Llama 3.1 8B, FSDP2 with compiled blocks, selective
// checkpointing by operators, 8 H100 of 500 W, 2 sequences of 8,192 tokens each: 6,667 tokens/s a GPU.
TEST(LikeStep, TorchtitansEightBillionAreNearWhatItPublishes) {
  EagerOptions o{.framework = eager::Framework::fsdp2};
  o.code = eager::Code::torchtitan;
  o.torchtitan.compiled = true;
  o.update = eager::Update::fused;
  plan::Strategy s = eight_ranks(3);
  s.micro_batch = 2;
  s.global_batch = 16;
  s.recompute = plan::Recompute::selective;
  cluster::Cluster cards = h100();
  const Result<step::StepTime> full = eager_step_time(named("llama-3.1-8b"), s, o, cards);
  cards.memory_bandwidth = BytesPerSecond{2.4e12};
  cards.kernel_laws->clock_share = 0.764;  // (500 W / 700 W) ^ 0.8, as tests/validation prices that card
  const Result<step::StepTime> limited = eager_step_time(named("llama-3.1-8b"), s, o, cards);
  ASSERT_TRUE(full && limited);
  EXPECT_NEAR(limited->tokens_per_second, 6667, 0.15 * 6667);
  EXPECT_GT(full->tokens_per_second, limited->tokens_per_second);
}

TEST(LikeStep, LeversMoveItAsTheyShould) {
  const model::Model llama = named("llama-3.1-8b");
  const plan::Strategy s = eight_ranks(3);
  const EagerOptions fsdp2{.framework = eager::Framework::fsdp2};
  const double usual = seconds(llama, s, fsdp2);

  plan::Strategy again = s;
  again.recompute = plan::Recompute::block;
  EXPECT_GT(seconds(llama, again, fsdp2), 1.2 * usual);
  EXPECT_LT(seconds(llama, again, fsdp2), 1.4 * usual);

  EagerOptions fused = fsdp2;
  fused.update = eager::Update::fused;
  EXPECT_LT(seconds(llama, s, fused), usual);

  EagerOptions written = fsdp2;
  written.attention = eager::Attention::eager;
  EXPECT_GT(seconds(llama, s, written), usual);

  plan::Strategy kept = s;
  kept.stage = 2;  // gathers once
  EXPECT_LE(seconds(llama, kept, fsdp2), usual);

  EagerOptions megatron{.framework = eager::Framework::megatron};
  EXPECT_LT(seconds(llama, eight_ranks(1), megatron), usual);  // kernels of Transformer Engine
}

TEST(LikeStep, DecodersOfBothKindsHaveLaws) {
  for (const char* const name : {"gpt2-xl", "llama-3.1-8b", "llama-3.2-1b", "qwen2.5-7b", "mistral-7b"})
    EXPECT_GT(seconds(named(name), eight_ranks(0), {.framework = eager::Framework::ddp}), 0) << name;
}

TEST(LikeStep, Fp32TakesLongestAndAutocastIsOf16Bits) {
  const model::Model llama = named("llama-3.2-1b");
  const auto of = [&](plan::Precision precision, bool autocast) {
    plan::Strategy strategy = eight_ranks(0);
    strategy.precision = precision;
    return seconds(llama, strategy, {.framework = eager::Framework::ddp, .autocast = autocast});
  };
  const double narrow = of(plan::Precision::bf16, false), autocast = of(plan::Precision::fp32, true),
               tensor_float = of(plan::Precision::tf32, false), wide = of(plan::Precision::fp32, false);
  EXPECT_GE(autocast, narrow) << "weights of fp32 are exchanged and updated";
  EXPECT_GT(tensor_float, autocast);
  EXPECT_GT(wide, tensor_float);
}

TEST(LikeStep, WhereNoLawsAreKnownThereIsNoTime) {
  const model::Model llama = named("llama-3.2-1b");
  const EagerOptions ddp{.framework = eager::Framework::ddp};
  model::Model other = llama;
  other.intermediate /= 2;  // sizes that do not make its parameters, as those of a mixture of experts
  expect_none(other, eight_ranks(0), ddp, "decoder");

  cluster::Cluster bare = h100();
  bare.kernel_laws.reset();
  EXPECT_FALSE(eager_step_time(llama, eight_ranks(0), ddp, bare));
}

}  // namespace
}  // namespace shard::like
