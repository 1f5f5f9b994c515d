// Do ranks that share a model train it to what one rank would, in the memory and calls planned, and to one number of
// their own whatever else the strategy is?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/agreement/matrix.h"
#include "tests/agreement/tap.h"
#include "tests/daily.h"
#include "tests/model/tiny_models.h"

namespace shard {
namespace {

using model::TensorLayout;

ModelPtr odd_mlp() {
  return tiny_model(R"({"model_type": "mlp", "sizes": [6, 8, 5, 12, 7, 4]})");
}

/// A run, and every rank's parameters by name when it ended (stage 0: all of what the rank works with).
struct TrainedRanks {
  std::vector<float> losses;
  ModelPtr part;                                                      ///< what each rank works with
  std::vector<std::map<std::string, std::vector<float>>> parameters;  ///< by rank
};

TrainedRanks trained_ranks(const ModelPtr& model, const plan::Strategy& strategy, std::int64_t steps) {
  Result<plan::PlanSet> plans = plan::compile(model, strategy);
  if (!plans) {
    ADD_FAILURE() << to_string(plans.error());
    return {};
  }
  const auto world = static_cast<std::size_t>(strategy.world_size);
  auto communicators = make_in_process(strategy.world_size);
  TrainedRanks result{.losses = {}, .part = plans->classes[0].model, .parameters = {}};
  result.parameters.resize(world);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < world; ++rank)
      threads.emplace_back([&, rank] {
        const plan::Plan& plan = plans->of_rank(static_cast<std::int32_t>(rank));
        Tap tap(*communicators[rank]);
        cpu::ThreadPool pool(1);
        auto data =
            open_data("random", *model, {.batch = strategy.micro_batch, .sequence = strategy.sequence, .seed = 7});
        ASSERT_TRUE(data) << to_string(data.error());
        const auto run = train::run_session(plan, tap, **data, pool,
                                            {.steps = steps,
                                             .digest = false,
                                             .scalars = {.learning_rate = 0.5, .weight_decay = 0},
                                             .seed = 7,
                                             .after_step = {},
                                             .before_phase = {}});
        if (!run) tap.abort(to_string(run.error()));
        ASSERT_TRUE(run) << to_string(run.error());
        if (rank == 0) result.losses = run->losses;
        for (std::size_t f = 0; f < plan.flats.size(); ++f)
          for (const plan::Flat::Item& item : plan.flats[f].items) {
            const auto* content = reinterpret_cast<const float*>(
                tap.arena.data() + plan.buffer(plan.flat_parameters[f]).offset + 4 * item.offset.count());
            const std::string& name = plan.model->parameters[static_cast<std::size_t>(item.param.value)].name;
            result.parameters[rank][name].assign(content, content + item.elems.count());
          }
      });
  }
  return result;
}

plan::Strategy shared_by(std::int32_t degree, const model::Model& model, TensorLayout layout) {
  return {.world_size = degree,
          .micro_batch = 2,
          .global_batch = 4,
          .sequence = model.family == model::Family::mlp ? 1 : 8,
          .optimizer = plan::OptimizerKind::sgd,
          .tensor_parallel = degree,
          .tensor_layout = layout};
}

struct Subjects {
  const char* name;
  ModelPtr model;
  TensorLayout layout;
};

std::vector<Subjects> subjects() {
  return {{"gpt2", tiny_gpt2(true), TensorLayout::megatron},
          {"gpt2 untied", tiny_gpt2(false), TensorLayout::megatron},
          {"gpt2 as the tutorial", tiny_gpt2(true), TensorLayout::colossalai},
          {"gpt2 untied as the tutorial", tiny_gpt2(false), TensorLayout::colossalai},
          {"llama", tiny_llama(false), TensorLayout::megatron},
          {"llama tied", tiny_llama(true), TensorLayout::megatron},
          {"llama as the tutorial", tiny_llama(false), TensorLayout::colossalai},
          {"llama tied as the tutorial", tiny_llama(true), TensorLayout::colossalai},
          {"mlp", odd_mlp(), TensorLayout::megatron}};
}

/// The parameter of all ranks' parts, and whether those that every rank has whole are the same bits everywhere.
std::vector<float> assembled(const TrainedRanks& run, std::size_t index, const std::string& what) {
  const model::Model& part = *run.part;
  const Parameter& own = part.parameters[index];
  if (part.split.degree == 1) return run.parameters[0].at(own.name);
  const model::ParameterSplit& split = part.split.parameters[index];
  std::int64_t elements = 1;
  for (std::int64_t d : split.whole) elements *= d;
  std::vector<float> whole(static_cast<std::size_t>(elements), NAN);
  for (std::int32_t r = 0; r < part.split.degree; ++r) {
    const std::vector<float>& held = run.parameters[static_cast<std::size_t>(r)].at(own.name);
    if (!split.cut() && r > 0) {
      EXPECT_EQ(held, run.parameters[0].at(own.name)) << what << ' ' << own.name << " on " << r;
    }
    model::for_each_run(split, part.split.degree, r, 0, own.elems.count(),
                        [&](std::int64_t local, std::int64_t first, std::int64_t n) {
                          std::copy_n(held.begin() + local, n, whole.begin() + first);
                        });
  }
  return whole;
}

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (float v : values) largest = std::max(largest, std::abs(static_cast<double>(v)));
  return largest;
}

TEST(TensorParallel, CreatesTheParametersOfOneRank) {
  for (const Subjects& s : subjects()) {
    const TrainedRanks one = trained_ranks(s.model, shared_by(1, *s.model, s.layout), 0);
    for (std::int32_t degree : {2, 4}) {
      const TrainedRanks many = trained_ranks(s.model, shared_by(degree, *s.model, s.layout), 0);
      for (std::size_t p = 0; p < s.model->parameters.size(); ++p)
        EXPECT_EQ(assembled(many, p, s.name), one.parameters[0].at(s.model->parameters[p].name))
            << s.name << ' ' << degree << ' ' << s.model->parameters[p].name;
    }
    if (HasFailure()) return;
  }
}

// One step of plain gradient descent: what changed is the gradient, parameter by parameter.
TEST(TensorParallel, GradientsAreThoseOfOneRank) {
  for (const Subjects& s : subjects()) {
    const TrainedRanks before = trained_ranks(s.model, shared_by(1, *s.model, s.layout), 0);
    const TrainedRanks one = trained_ranks(s.model, shared_by(1, *s.model, s.layout), 1);
    for (std::int32_t degree : {2, 4}) {
      const TrainedRanks many = trained_ranks(s.model, shared_by(degree, *s.model, s.layout), 1);
      ASSERT_EQ(many.losses.size(), 1U);
      EXPECT_NEAR(many.losses[0], one.losses[0], 1e-5 * std::abs(one.losses[0])) << s.name << ' ' << degree;
      for (std::size_t p = 0; p < s.model->parameters.size(); ++p) {
        const std::string& name = s.model->parameters[p].name;
        const std::vector<float> first = before.parameters[0].at(name);
        const std::vector<float> expected = one.parameters[0].at(name);
        const std::vector<float> found = assembled(many, p, s.name);
        std::vector<float> gradient = expected;
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= first[i];
        // The parameters' own spacing hides smaller differences.
        const double tolerance = 1e-5 * largest_of(gradient) + 2.5e-7 * largest_of(expected);
        double worst = 0;
        for (std::size_t i = 0; i < found.size(); ++i)
          worst = std::max(worst, std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])));
        EXPECT_LE(worst, tolerance) << s.name << ' ' << degree << ' ' << name << ", gradient " << largest_of(gradient);
      }
    }
    if (HasFailure()) return;
  }
}

TEST(TensorParallel, LossesFollowThoseOfOneRank) {
  for (const Subjects& s : subjects()) {
    const TrainedRanks one = trained_ranks(s.model, shared_by(1, *s.model, s.layout), 5);
    for (std::int32_t degree : {2, 4}) {
      const TrainedRanks many = trained_ranks(s.model, shared_by(degree, *s.model, s.layout), 5);
      ASSERT_EQ(many.losses.size(), 5U);
      for (std::size_t i = 0; i < 5; ++i)
        EXPECT_NEAR(many.losses[i], one.losses[i], 1e-5 * std::abs(one.losses[i]))
            << s.name << ' ' << degree << " step " << i;
    }
    if (HasFailure()) return;
  }
}

// A rank's heads draw the masks that they have in the whole model: ranks that drew others would train another one.
TEST(TensorParallel, HeadsDropWhatTheyDoOnOneRank) {
  for (const Subjects& s : subjects()) {
    const auto losses = [&](std::int32_t degree) {
      plan::Strategy strategy = shared_by(degree, *s.model, s.layout);
      strategy.dropout = 0.3F;
      return trained_ranks(s.model, strategy, 3).losses;
    };
    const std::vector<float> one = losses(1);
    for (std::int32_t degree : {2, 4}) {
      const std::vector<float> many = losses(degree);
      ASSERT_EQ(many.size(), 3U);
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(many[i], one[i], 1e-5 * std::abs(one[i])) << s.name << ' ' << degree << " step " << i;
    }
    if (HasFailure()) return;
  }
}

/// Pairs of world, stage, unit, recompute, prefetch, threads and hybrid sharding: one number per degree, layout and
/// precision.
struct Shared {
  std::string model;
  Elems chunk;
  std::int32_t degree = 2;
  TensorLayout layout = TensorLayout::megatron;
  plan::Precision precision = plan::Precision::fp32;
};

class OneNumber : public testing::TestWithParam<Shared> {};

TEST_P(OneNumber, WhateverElseTheStrategyIs) {
  const Shared& s = GetParam();
  const Subject subject{.model = s.model,
                        .sequence = 8,
                        .chunk = s.chunk,
                        .steps = 2,
                        .precision = s.precision,
                        .tensor_parallel = s.degree,
                        .tensor_layout = s.layout};
  expect_agreement(subject, daily::part_of(pairwise(levels(subject)), 12));
}

std::vector<Shared> shared_models() {
  using plan::Precision;
  const std::string llama = TEST_DATA "/data/models/llama-nano.json";
  const Elems part{30'000};
  return {{"gpt2-nano", part, 2, TensorLayout::megatron, Precision::fp32},
          {"gpt2-nano", part, 2, TensorLayout::megatron, Precision::bf16},
          {"gpt2-nano", part, 2, TensorLayout::megatron, Precision::fp16},
          {"gpt2-nano", part, 2, TensorLayout::colossalai, Precision::fp32},
          {"gpt2-nano", part, 4, TensorLayout::megatron, Precision::bf16},
          {llama, part, 2, TensorLayout::megatron, Precision::fp32},
          {llama, part, 2, TensorLayout::megatron, Precision::bf16},
          {llama, part, 2, TensorLayout::megatron, Precision::fp16},
          {llama, part, 4, TensorLayout::colossalai, Precision::fp16}};
}

INSTANTIATE_TEST_SUITE_P(TensorParallel, OneNumber, testing::ValuesIn(shared_models()), [](const auto& param) {
  const Shared& s = param.param;
  return std::string(s.model == "gpt2-nano" ? "Gpt2" : "Llama") + to_string(s.layout) + std::to_string(s.degree) +
         to_string(s.precision);
});

}  // namespace
}  // namespace shard
