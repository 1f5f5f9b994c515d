// Does each rule of PyTorch 1.8 hold by itself, beyond the one recipe?
#include <gmock/gmock.h>

#include <array>
#include <random>

#include "sim/like/eager/ddp_buckets.h"
#include "sim/like/pytorch_1_8.h"
#include "sim/like/zero_owners.h"
#include "sim/model/read_model.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

using test::like;
using test::maxima;
using test::mlp;
using test::recipe;
using test::recipe_model;
using testing::ElementsAre;

constexpr std::int64_t kMiB = 1 << 20;

std::vector<std::vector<std::size_t>> buckets(std::vector<std::int64_t> sizes, std::vector<std::int64_t> limits) {
  const auto bytes = [](const std::vector<std::int64_t>& counts) {
    std::vector<Bytes> all;
    for (std::int64_t n : counts) all.push_back(Bytes{n});
    return all;
  };
  return assign_buckets(bytes(sizes), bytes(limits));
}

TEST(Buckets, OneClosesOnceItHoldsItsLimit) {
  EXPECT_THAT(buckets({4, 6, 1, 9, 10, 3}, {10}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4), ElementsAre(5)));
  EXPECT_THAT(buckets({9, 9, 9}, {10}), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(Buckets, TheLastLimitHoldsForAllThatFollow) {
  EXPECT_THAT(buckets({1, 1, 1, 1, 1, 1, 1}, {1, 2, 3}),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3, 4, 5), ElementsAre(6)));
}

TEST(Buckets, OfTheRecipeByHand) {
  std::vector<std::int64_t> sizes;
  for (int layer = 0; layer < 20; ++layer) sizes.insert(sizes.end(), {16000000, 8000});
  const auto broadcast = buckets(sizes, {250 * kMiB});
  ASSERT_EQ(broadcast.size(), 2u);
  EXPECT_EQ(broadcast[0].size(), 33u);  // 16 layers, and the weight that passes 250 MiB
  const auto gradients = buckets(sizes, {kMiB, 25 * kMiB});
  ASSERT_EQ(gradients.size(), 11u);
  EXPECT_THAT(gradients[0], ElementsAre(0));
  EXPECT_THAT(gradients[1], ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(gradients[9], ElementsAre(33, 34, 35, 36));
  EXPECT_THAT(gradients[10], ElementsAre(37, 38, 39));
}

TEST(Buckets, KeepEveryTensorOnceInOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> sizes(1 + random() % 60);
    for (std::int64_t& size : sizes) size = static_cast<std::int64_t>(1 + random() % 100);
    std::size_t next = 0;
    std::size_t number = 0;
    const auto all = buckets(sizes, {20, 90});
    for (const auto& bucket : all) {
      std::int64_t held = 0;
      for (std::size_t i : bucket) {
        ASSERT_EQ(i, next++);
        held += sizes[i];
      }
      const std::int64_t limit = number++ == 0 ? 20 : 90;
      if (number < all.size()) {
        ASSERT_GE(held, limit);
      }
      ASSERT_LT(held - sizes[bucket.back()], limit);
    }
    ASSERT_EQ(next, sizes.size());
  }
}

LikePlan plan_of(const model::Model& model, const plan::Strategy& strategy) {
  return pytorch_1_8_plan(std::make_shared<const model::Model>(model), strategy);
}

/// Names of the ops of a phase that begin so.
std::vector<std::string> ops(const LikePlan& like, Phase phase, const std::string& begin) {
  std::vector<std::string> names;
  for (const plan::Op& op : like.plan.find(phase)->ops)
    if (op.name.starts_with(begin)) names.emplace_back(op.name);
  return names;
}

TEST(Ddp, TwoBroadcastsAreInFlight) {
  // 70 MB a weight: a bucket holds four of them.
  EXPECT_THAT(ops(plan_of(mlp(12, 4183, false), recipe(0)), Phase::creation, "broadcast"),
              ElementsAre("broadcast 0", "broadcast 1", "broadcast 0 copied back", "broadcast 2",
                          "broadcast 1 copied back", "broadcast 2 copied back"));
}

TEST(Ddp, GradientBucketsAreMadeFromTheLast) {
  EXPECT_THAT(ops(plan_of(mlp(4, 2000), recipe(0)), Phase::creation, "gradient"),
              ElementsAre("gradient bucket 2", "gradient bucket 1", "gradient bucket 0"));
}

// One weight of 400 MB is sent where it lies: the constructor takes its gradient bucket only.
TEST(Ddp, ABucketOfOneTensorIsNotFlattened) {
  EXPECT_THAT(maxima(like(mlp(1, 10000, false), recipe(0)))[1], 2 * 191 * 2 * kMiB);
}

// 300 KiB, 600 KiB, 900 KiB, 1200 KiB ... a limit of 1 MiB takes four layers, of 512 KiB two.
TEST(Ddp, TheFirstBucketIsOneMiB) {
  Rules wrong;
  wrong.first_bucket = Bytes{512 << 10};
  const model::Model model = mlp(120, 277, false);
  EXPECT_NE(like(model, recipe(0)).statistics.allocation_count, 0);
  const auto first = [&](const Rules& rules) {
    const LikePlan like = pytorch_1_8_plan(std::make_shared<const model::Model>(model), recipe(0), rules);
    for (const plan::Buffer& b : like.plan.buffers)
      if (b.name == "gradient bucket 0") return b.bytes.count();
    return std::int64_t{0};
  };
  EXPECT_EQ(first({}), 4 * 277 * 277 * 4);
  EXPECT_EQ(first(wrong), 2 * 277 * 277 * 4);
  EXPECT_NE(maxima(like(model, recipe(0))), maxima(like(model, recipe(0), wrong)));
}

TEST(Ddp, ATiedWeightIsInTheModulesStateTwice) {
  plan::Strategy s = recipe(0);
  s.sequence = 16;
  const auto broadcast = [&](const char* tied) {
    const model::Model model = test::model_of(
        std::string(R"({"model_type": "gpt2", "vocab_size": 100, "n_positions": 16, "n_embd": 8, "n_layer": 1,
                        "n_head": 2, "tie_word_embeddings": )") +
        tied + "}");
    std::int64_t shapes = 0, parameters = 0;
    for (const Parameter& p : model.parameters) {
      shapes += 2 * 8 * static_cast<std::int64_t>(p.shape.size());
      parameters += p.elems.count() * 4;
    }
    return std::pair{like(model, s).collectives[0].bytes.count() - shapes, parameters};
  };
  EXPECT_EQ(broadcast("true").first, broadcast("true").second + 100 * 8 * 4);
  EXPECT_EQ(broadcast("false").first, broadcast("false").second);
}

// 10 x Linear(3000, 3000) without bias, by hand. A weight of 36,000,000 bytes rounds to 36,000,256; its segment of 36
// MiB is split, as more than 1 MiB is left. The state goes in two buckets (8 and 2 weights), in whose segments the ten
// gradient buckets, one weight each, find room. An activation has 64 x 3000 x 4 bytes.
TEST(Ddp, AnotherModelByHand) {
  constexpr std::int64_t kWeight = 36000256, kActivation = 768000;
  plan::Strategy s = recipe(0);
  s.world_size = 4;
  s.micro_batch = 64;
  s.global_batch = 256;
  s.optimizer = plan::OptimizerKind::sgd;
  const std::int64_t before_step = 30 * kWeight + 4 * kActivation;
  EXPECT_THAT(maxima(like(mlp(10, 3000, false), s)), ElementsAre(10 * kWeight, 20 * kWeight, before_step, before_step));
  s.optimizer = plan::OptimizerKind::adam;
  EXPECT_EQ(maxima(like(mlp(10, 3000, false), s))[3], 52 * kWeight + 2 * kActivation);
  // Weights 0, 4 and 8 are rank 0's.
  s.stage = 1;
  s.partition = plan::Partition::parameter;
  EXPECT_EQ(maxima(like(mlp(10, 3000, false), s))[3], 38 * kWeight + 2 * kActivation);
}

ParameterList sized(std::vector<std::int64_t> elems) {
  ParameterList list;
  for (std::int64_t n : elems) list.push_back({.name = std::to_string(list.size()), .shape = {n}, .elems = Elems{n}});
  return list;
}

TEST(Zero, ParametersGoToTheLeastLoadedRankAsTheyCome) {
  const ParameterList list = sized({6, 1, 6, 1, 6, 1});
  EXPECT_THAT(zero_owners(list, 2, OwnerOrder::registration), ElementsAre(0, 1, 1, 0, 0, 1));
  EXPECT_THAT(zero_owners(list, 2, OwnerOrder::largest_first), ElementsAre(0, 1, 1, 1, 0, 1));
  EXPECT_THAT(zero_owners(list, 1, OwnerOrder::registration), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Zero, StateIsEightBytesAnElementOfTheOwner) {
  for (const std::int32_t world : {1, 2, 3, 4, 8}) {
    plan::Strategy s = recipe(1);
    s.world_size = world;
    s.global_batch = world * s.micro_batch;
    const model::Model model = mlp(7, 96);
    const std::vector<std::int32_t> owners = zero_owners(model.parameters, world, OwnerOrder::registration);
    std::int64_t mine = 0;
    for (std::size_t p = 0; p < owners.size(); ++p)
      if (owners[p] == 0) mine += model.parameters[p].elems.count();
    EXPECT_EQ(like(model, s).optimizer_state.count(), 8 * mine);
  }
}

TEST(Optimizer, SgdTakesNothing) {
  plan::Strategy s = recipe(0);
  s.optimizer = plan::OptimizerKind::sgd;
  const LikeResult r = like(recipe_model(), s);
  EXPECT_EQ(r.moments[3].max_allocated, r.moments[2].max_allocated);
  EXPECT_EQ(r.optimizer_state.count(), 0);
}

TEST(Optimizer, AdamWTakesWhatAdamTakes) {
  plan::Strategy s = recipe(1);
  s.optimizer = plan::OptimizerKind::adamw;
  EXPECT_EQ(maxima(like(recipe_model(), s)), maxima(like(recipe_model(), recipe(1))));
}

TEST(Optimizer, EveryStateIsBornBeforeTheFirstUpdate) {
  const LikePlan like = plan_of(mlp(3, 8), recipe(0));
  std::string order;
  for (const plan::Op& op : like.plan.find(Phase::first_step)->ops)
    if (op.part == plan::Part::optimizer) order += op.name.starts_with("state") ? 's' : 'u';
  EXPECT_EQ(order, "ssssssuuuuuu");
}

TEST(Script, OneRankDoesWhatManyDo) {
  plan::Strategy one = recipe(0);
  one.world_size = 1;
  one.global_batch = one.micro_batch;
  EXPECT_EQ(maxima(like(recipe_model(), one)), maxima(like(recipe_model(), recipe(0))));
  one.stage = 1;
  one.partition = plan::Partition::parameter;
  EXPECT_EQ(maxima(like(recipe_model(), one)), maxima(like(recipe_model(), recipe(0))));
}

// From 262 samples on an activation is above 1 MiB and lives in the large pool.
TEST(Script, ALargerBatchNeverTakesLess) {
  std::vector<std::int64_t> previous(4, 0);
  for (std::int64_t batch = 1; batch <= 4096; batch *= 2) {
    plan::Strategy s = recipe(1);
    s.micro_batch = batch;
    s.global_batch = 2 * batch;
    const std::vector<std::int64_t> now = maxima(like(mlp(6, 1000), s));
    for (std::size_t i = 0; i < now.size(); ++i) EXPECT_GE(now[i], previous[i]) << batch;
    previous = now;
  }
}

TEST(Script, FurtherMicroStepsAddToGradientsThroughOneMore) {
  plan::Strategy s = recipe(0);
  s.global_batch *= 3;
  const LikeResult r = like(recipe_model(), s);
  // Beside the blocks of one micro-step: the contribution to the gradient at hand.
  const std::int64_t once = maxima(like(recipe_model(), recipe(0)))[2];
  EXPECT_GT(maxima(r)[2], once);
  EXPECT_LT(maxima(r)[2], once + 16777216 + 24 * 160256);
  std::int64_t contributions = 0;
  for (const Block& b : r.moments[2].blocks) contributions += b.name.ends_with(" contribution") ? 1 : 0;
  EXPECT_GE(contributions, 1);
  EXPECT_LE(contributions, 2);  // a layer's weight and bias
}

TEST(Script, EveryBlockIsGivenBackOrStaysToTheEnd) {
  for (const std::string_view name : {"gpt2-nano", "mlp-20x2000"}) {
    const Result<model::Model> model = model::read_model(name);
    ASSERT_TRUE(model) << name;
    plan::Strategy s = recipe(0);
    s.global_batch *= 2;
    if (model->max_sequence > 1) s.sequence = 32;
    const LikePlan like = plan_of(*model, s);
    std::vector<int> live(like.plan.buffers.size(), 0);
    for (const plan::PhaseOps& phase : like.plan.phases) {
      for (const plan::Op& op : phase.ops) {
        for (BufferId id : op.acquire) ++live[static_cast<std::size_t>(id.value)];
        for (const plan::Operand& o : op.operands) {
          ASSERT_EQ(live[static_cast<std::size_t>(o.buffer.value)], 1)
              << name << ": " << op.name << " touches " << like.plan.buffer(o.buffer).name;
        }
        for (BufferId id : op.release) --live[static_cast<std::size_t>(id.value)];
      }
    }
    for (std::size_t b = 0; b < live.size(); ++b)
      EXPECT_TRUE(live[b] == 0 || like.plan.buffers[b].persistent) << like.plan.buffers[b].name;
  }
}

// What no implementation without fused kernels can do with less: each layer's probabilities, the logits, what
// log_softmax made of them, and both their gradients.
TEST(Transformer, ProbabilitiesAndLogitsAreThere) {
  const Result<model::Model> model = model::read_model("gpt2-nano");
  ASSERT_TRUE(model);
  plan::Strategy s = recipe(0);
  s.micro_batch = 8;
  s.global_batch = 16;
  s.sequence = 128;
  const LikeResult r = like(*model, s);
  std::int64_t probabilities = 0, logits = 0;
  for (const Block& b : r.moments[2].blocks) {
    probabilities += b.name.ends_with("probabilities") && b.requested.count() == 8 * 4 * 128 * 128 * 4 ? 1 : 0;
    logits += b.requested.count() == 8 * 128 * 256 * 4 ? 1 : 0;
  }
  EXPECT_GE(probabilities, 4);
  EXPECT_GE(logits, 1);
  s.recompute = plan::Recompute::block;
  EXPECT_LT(maxima(like(*model, s))[2], maxima(r)[2]);
}

}  // namespace
}  // namespace shard::like
