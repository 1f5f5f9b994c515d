// Do the rules that make eager PyTorch's memory hold one by one?
#include <gmock/gmock.h>

#include <algorithm>

#include "sim/like/eager/operators.h"
#include "sim/like/pytorch/linux_device.h"
#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"

namespace shard::like::eager {
namespace {

using testing::ElementsAre;

/// What a snippet takes (+) and gives back (-), in order.
struct Written : testing::Test {
  like::Program program;
  Tape tape{program};
  Runtime r{tape, {}, 211, 4};

  Written() {
    tape.begin_phase(Phase::first_step);
    tape.set_part(Part::forward, Category::activation);
  }
  Tensor leaf(const Dims& sizes) {
    Tensor t = r.empty(sizes, Scalar::f32);
    t.set_parameter(static_cast<std::int32_t>(r.parameters().size()));
    r.parameters().push_back(t);
    return t;
  }
  std::vector<std::int64_t> events_since(std::size_t first) {
    std::vector<std::int64_t> events;
    for (const Step& step : program.steps) {
      if (step.kind == StepKind::take) events.push_back(program.allocation({step.at}).bytes.count());
      if (step.kind == StepKind::give_back) events.push_back(-program.allocation({step.at}).bytes.count());
    }
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(first));
    return events;
  }
};

TEST_F(Written, PowersKeepTheirInputAndHoldTwoTemporaries) {
  const Tensor x = leaf({10});
  const Tensor y = pow_number(r, x);
  const Tensor loss = sum_last(r, y);
  r.backward(loss);
  // x, its power, the sum; the root gradient; twice a temporary, then the gradient, which the leaf takes over.
  EXPECT_THAT(events_since(0), ElementsAre(40, 40, 4, 4, 40, 40, 40, -40, -40, -4));
}

TEST_F(Written, OfLeavesThatShareAGradientTheFirstClonesIt) {
  const Tensor a = leaf({10}), b = leaf({10});
  const Tensor y = add(r, a, b);
  const Tensor doubled = mul_number(r, y);
  const Tensor loss = sum_last(r, doubled);
  r.backward(loss);
  // The root gradient, that of the sum, which goes to both leaves, a clone for the first; the second is alone with it.
  EXPECT_THAT(events_since(5), ElementsAre(4, 40, 40, -4));
}

TEST_F(Written, SumsOverManyRowsHaveAHiddenBuffer) {
  // pytorch-memory.md, section 6: 4 m c 128 bytes; n = 1024, m = 4096 on 132 multiprocessors.
  const ReductionBuffers rows = reduction_buffers({1024, 4096}, {4096, 1}, 1U, {});
  EXPECT_EQ(rows.partial.count(), 33'554'432);
  EXPECT_EQ(reduction_buffers({4096, 4096}, {4096, 1}, 1U, {}).partial.count(), 134'217'728);
  EXPECT_EQ(reduction_buffers({4096, 4096}, {4096, 1}, 1U, {80, 108, 2048}).partial.count(), 113'246'208);
  EXPECT_EQ(reduction_buffers({8192, 10240}, {10240, 1}, 1U, {}).partial.count(), 141'557'760);
  EXPECT_EQ(reduction_buffers({512, 4096}, {4096, 1}, 1U, {}).partial.count(), 0);
}

TEST_F(Written, SumsOfEverythingHaveOne) {
  const auto buffers = [](std::int64_t n, std::int64_t m) {
    const ReductionBuffers b = reduction_buffers({n, m}, {m, 1}, 2U, {});
    return std::pair{b.partial.count(), b.semaphores.count()};
  };
  EXPECT_EQ(buffers(1, 1 << 20), (std::pair<std::int64_t, std::int64_t>{512, 4}));
  EXPECT_EQ(buffers(1, 1 << 26), (std::pair<std::int64_t, std::int64_t>{2112, 4}));
}

TEST(LinuxDevice, RangesGoDownAndGapsFillFromBelow) {
  constexpr Bytes kMi{1 << 20};
  LinuxDevice device;
  const Address first = *device.take(2 * kMi, 0, Pool::small), second = *device.take(20 * kMi, 0, Pool::large);
  EXPECT_EQ(second, first + (2 << 20)) << "the rest of the first range";
  const Address below = *device.take(40 * kMi, 0, Pool::large);
  EXPECT_EQ(below, first - (64 << 20)) << "a range of its own, directly below";
  device.give_back(first, 2 * kMi);
  EXPECT_EQ(*device.take(2 * kMi, 0, Pool::small), below + (40 << 20)) << "the lowest gap comes first";
}

TEST(LinuxDevice, RefusesWhatDoesNotFit) {
  constexpr Bytes kMi{1 << 20};
  LinuxDevice device(30 * kMi);
  EXPECT_TRUE(device.take(20 * kMi, 0, Pool::large));
  EXPECT_FALSE(device.take(20 * kMi, 0, Pool::large));
}

TEST(Eager, AWindowThatIsNotUsedLimitsNoSequence) {
  const auto model = std::make_shared<model::Model>(test::model_of(
      R"({"model_type": "qwen2", "vocab_size": 1000, "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 8192})"));
  plan::Strategy strategy;
  strategy.sequence = 8192;
  strategy.micro_batch = strategy.global_batch = 1;
  EXPECT_TRUE(simulate_eager(model, strategy, EagerOptions{}));
}

TEST(Eager, ModulesOfAProgramHaveTheirNamesWhenItHasRun) {
  const auto model = std::make_shared<model::Model>(test::model_of(
      R"({"model_type": "gpt_neox", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 1,
          "num_attention_heads": 4, "intermediate_size": 64})"));
  const eager::Run run = eager::run(model, {.program = {.batch = 1, .sequence = 8}});
  const auto positions = std::ranges::find(run.program.operators, "positions", &like::Operator::name);
  ASSERT_NE(positions, run.program.operators.end());
  EXPECT_EQ(positions->module, "gpt_neox");
}

TEST(Eager, WhatIsNotModelledIsSaid) {
  const auto refusal = [](const plan::Strategy& strategy, const EagerOptions& options = {}) {
    const auto model = std::make_shared<model::Model>(test::model_of(
        R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 4, "intermediate_size": 64})"));
    const Result<LikeResult> result = simulate_eager(model, strategy, options);
    return result ? std::string("answered") : result.error().what;
  };
  plan::Strategy strategy;
  strategy.sequence = 8;
  EXPECT_EQ(refusal(strategy), "answered");
  strategy.world_size = 2;
  strategy.global_batch = 2;
  EXPECT_THAT(refusal(strategy), testing::HasSubstr("more than one rank"));
  strategy.world_size = 1;
  EXPECT_EQ(refusal(strategy), "answered") << "two micro-steps";
  strategy.global_batch = 1;
  strategy.recompute = plan::Recompute::selective;
  EXPECT_THAT(refusal(strategy), testing::HasSubstr("selective activation checkpointing"));
  strategy.recompute = plan::Recompute::block;
  EXPECT_EQ(refusal(strategy), "answered");
  EagerOptions course;
  course.code = eager::Code::course;
  EXPECT_THAT(refusal(strategy, course), testing::HasSubstr("checkpointing"));
  strategy.recompute = plan::Recompute::none;
  EagerOptions autocast;
  autocast.autocast = true;
  EXPECT_EQ(refusal(strategy, autocast), "answered");
  strategy.precision = plan::Precision::bf16;
  EXPECT_THAT(refusal(strategy, autocast), testing::HasSubstr("--autocast"));
}

}  // namespace
}  // namespace shard::like::eager
