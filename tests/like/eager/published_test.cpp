// Does the emulation of eager PyTorch reach the peaks that others published of runs on real GPUs?
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

/// transformer_3.4b_step_fp32: a step of the CS336 course's loop behind five of warming up, PyTorch 2.11, compute
/// capability 12.0. Recorded by LINYUNLinYun/CS336-assignment2-systems at d7b9b89129.
struct Recorded : testing::Test {
  LikeResult result = [] {
    const auto model = std::make_shared<model::Model>(test::model_of(
        R"({"model_type": "llama", "vocab_size": 10000, "hidden_size": 2560, "num_hidden_layers": 32,
            "num_attention_heads": 32, "intermediate_size": 10240, "max_position_embeddings": 128})"));
    plan::Strategy strategy;
    strategy.micro_batch = strategy.global_batch = 4;
    strategy.sequence = 128;
    EagerOptions options{
        .machine = {.compute_capability = 120, .multiprocessors = 188, .threads_per_multiprocessor = 1536}};
    options.code = eager::Code::course;
    return simulate_eager(model, strategy, options).value();
  }();
};

TEST_F(Recorded, SteadyStepOf3400MillionParameters) {
  const Moment& steady = result.moments.back();
  EXPECT_EQ(steady.name, "steady step");
  EXPECT_EQ(steady.max_allocated.count(), 68'711'221'760);
  EXPECT_EQ(steady.max_reserved.count(), 74'637'639'680);
  EXPECT_EQ(steady.allocated.count(), 55'061'602'304) << "what the recording begins with";
}

TEST_F(Recorded, ItsPeakIsTheStepsTemporariesBesideAllStates) {
  const Moment& steady = result.moments.back();
  EXPECT_EQ(steady.op, "optimizer roots");
  const auto sum = [&](Category category) {
    Bytes bytes{0};
    for (const Block& b : steady.blocks)
      if (b.category == category) bytes += b.requested;
    return bytes.count();
  };
  constexpr std::int64_t kParameters = 3'406'809'600;
  EXPECT_EQ(sum(Category::parameter), 4 * kParameters);
  EXPECT_EQ(sum(Category::gradient), 4 * kParameters);
  EXPECT_EQ(sum(Category::optimizer_state), 8 * kParameters);
}

}  // namespace
}  // namespace shard::like
