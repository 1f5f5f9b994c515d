// Does a loop of one's own train as the command does, and is what it reads of memory what the plan says?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <shardscope/shardscope.h>

#include <random>

#include "tests/api/trainings.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using shardscope::Live;
using shardscope::Model;
using shardscope::Options;
using shardscope::Plan;
using shardscope::Step;
using shardscope::Strategy;
using shardscope::Training;
using testing::ElementsAre;

const Options kSmall{"--sequence", "32", "--micro-batch", "1", "--global-batch", "4", "--steps", "3"};

Step must_step(Training& training) {
  return must(training.step());
}

nlohmann::json trained(const Options& options) {
  return json_of(shardscope(with({"train", "--model", "gpt2-nano", "--data", "random", "--json"}, options)));
}

TEST(OwnLoop, HasTheLossesAndTheStateOfTheCommand) {
  const Options numbers = with(kSmall, {"--seed", "5", "--lr", "2e-3", "--warmup-steps", "2", "--clip-norm", "1"});
  const nlohmann::json command = trained(numbers);
  for (const Options& sharding : {Options{}, Options{"--ranks", "2", "--stage", "3", "--unit", "chunk"},
                                  Options{"--ranks", "4", "--stage", "1", "--threads", "2"}}) {
    const Plan plan = plan_of(with(numbers, sharding));
    EXPECT_EQ(plan.hash() == command.at("plan_hash"), sharding.empty());
    Training training = start(plan);
    for (const auto& expected : command.at("steps")) {
      const Step step = must_step(training);
      EXPECT_EQ(step.number, expected.at("step"));
      EXPECT_EQ(step.loss, expected.at("loss").get<float>());
      EXPECT_EQ(step.learning_rate, expected.at("learning_rate"));
      ASSERT_TRUE(step.control);
      EXPECT_EQ(static_cast<float>(step.control->norm), expected.at("gradient_norm").get<float>());
    }
    EXPECT_EQ(state_of(training), command.at("state_sha256"));
  }
}

TEST(OwnLoop, BeginsWithACheckpoint) {
  const ScratchDirectory scratch;
  static_cast<void>(trained(with(kSmall, {"--save-weights", scratch.file("saved"), "--seed", "3"})));
  const Options from{"--weights", scratch.file("saved")};
  const nlohmann::json command = trained(with(kSmall, from));
  Training training = start(plan_of(with(with(kSmall, from), {"--ranks", "2", "--stage", "3"})));
  for (const auto& expected : command.at("steps"))
    EXPECT_EQ(must_step(training).loss, expected.at("loss").get<float>());
  EXPECT_EQ(state_of(training), command.at("state_sha256"));
}

TEST(OwnLoop, ReadsTheMemoryThatThePlanSaysAtEveryMoment) {
  for (const Options& strategy :
       {Options{}, Options{"--ranks", "2", "--stage", "3", "--precision", "bf16", "--recompute", "block"},
        Options{"--ranks", "2", "--stage", "2", "--precision", "bf16", "--placement", "host"}}) {
    const Plan plan = plan_of(with(kSmall, strategy));
    Training training = start(plan);
    ASSERT_EQ(training.created().size(), static_cast<std::size_t>(plan.ranks()));
    for (const auto& created : training.created()) {
      EXPECT_EQ(created.measured, created.predicted);
      EXPECT_GT(created.measured.model.device + created.measured.model.host, Bytes{0});
    }
    for (int n = 0; n < 3; ++n) {
      const Step step = must_step(training);
      ASSERT_EQ(step.memory.size(), static_cast<std::size_t>(plan.ranks()));
      for (const auto& rank : step.memory) EXPECT_EQ(rank.measured, rank.predicted) << "step " << step.number;
    }
    static_cast<void>(state_of(training));
    for (int rank = 0; rank < plan.ranks(); ++rank) EXPECT_EQ(*training.peak(rank), *plan.peak(rank)) << rank;
  }
}

std::int64_t sum(const nlohmann::json& by_category) {
  std::int64_t total = 0;
  for (const auto& [name, bytes] : by_category.items()) total += bytes.get<std::int64_t>();
  return total;
}

// The command's figures are the simulator's, which keeps books of its own.
TEST(OwnLoop, HasTheMomentsOfTheSimulator) {
  const Options options = with(kSmall, {"--precision", "bf16", "--recompute", "selective"});
  const nlohmann::json moments = trained(options).at("moments");
  std::vector<std::int64_t> expected;
  for (const auto& moment : moments) expected.push_back(sum(moment.at("predicted_by_category")));
  const Plan plan = plan_of(options);
  const auto in_step = *plan.steady_step(0);
  EXPECT_THAT(expected, ElementsAre(plan.created(0)->optimizer.device.count(), in_step.forward.device.count(),
                                    in_step.backward.device.count(), in_step.step.device.count()));
}

TEST(OwnLoop, GoesOnAtTheLastRateBehindTheSchedule) {
  const Options falling{"--lr", "1e-2", "--lr-schedule", "cosine", "--min-lr", "1e-3"};
  Training training = start(plan_of(with(kSmall, falling)));
  std::vector<double> rates;
  for (int n = 0; n < 6; ++n) rates.push_back(must_step(training).learning_rate);
  EXPECT_GT(rates[0], rates[1]);
  EXPECT_GT(rates[2], 1e-3);
  for (int n = 3; n < 6; ++n) EXPECT_DOUBLE_EQ(rates[static_cast<std::size_t>(n)], 1e-3);
}

TEST(OwnLoop, MasterParametersAreTheOptimizers) {
  const auto created = plan_of(with(kSmall, {"--precision", "bf16", "--unit", "tensor"})).created(0).value();
  // 2 bytes of parameters, 4 of masters, both in whole lines of the arena, with guards in some builds.
  const std::int64_t masters = created.optimizer.device.count() - created.model.device.count();
  EXPECT_NEAR(static_cast<double>(masters), 2.0 * static_cast<double>(created.model.device.count()), 1 << 16);
  const auto in_fp32 = plan_of(kSmall).created(0).value();
  EXPECT_EQ(in_fp32.optimizer, in_fp32.model);
}

std::vector<std::int32_t> random_tokens(const Plan& plan, unsigned seed, std::int32_t vocabulary) {
  std::mt19937 draw(seed);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(plan.global_batch() * (plan.sequence() + 1)));
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(draw() % static_cast<unsigned>(vocabulary));
  return tokens;
}

TEST(OwnTokens, GiveTheSameBitsWhoeverGetsThem) {
  std::vector<std::string> states;
  for (const Options& sharding : {Options{}, Options{"--ranks", "2", "--stage", "2"}, Options{"--ranks", "4"}}) {
    const Plan plan = plan_of(with(kSmall, sharding));
    Training training = start(plan);
    for (unsigned seed = 1; seed <= 2; ++seed) ASSERT_TRUE(training.step(random_tokens(plan, seed, 256)));
    states.push_back(state_of(training));
  }
  EXPECT_EQ(states[0], states[1]);
  EXPECT_EQ(states[0], states[2]);
  Training others = start(plan_of(kSmall));
  for (int n = 0; n < 2; ++n) static_cast<void>(must_step(others));
  EXPECT_NE(state_of(others), states[0]);
}

// Rows that go round can be learnt where the target is the token behind, and where it is the token itself; rows by
// chance in the second case alone.
TEST(OwnTokens, TheTargetIsTheNextToken) {
  const Plan plan = plan_of(with(kSmall, {"--lr", "1e-2"}));
  Training round = start(plan);
  Training by_chance = start(plan);
  std::vector<std::int32_t> tokens = random_tokens(plan, 0, 4);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i % 33 % 4);
  float learnt = 0;
  float not_learnt = 0;
  for (unsigned n = 0; n < 30; ++n) {
    const auto step = round.step(tokens);
    const auto other = by_chance.step(random_tokens(plan, n, 4));
    ASSERT_TRUE(step && other);
    learnt = step->loss;
    not_learnt = other->loss;
  }
  EXPECT_LT(learnt, 0.7F);
  EXPECT_GT(not_learnt, 1.2F);  // ln 4 is 1.39
}

TEST(Flops, OfTheDocumentsAreEightPerParameterAndToken) {
  const Plan plan = plan_of(with(kSmall, {"--ranks", "2", "--recompute", "block"}));
  const auto flops = *plan.flops(1);
  EXPECT_EQ(flops.by_parameters.count(), 8.0 * static_cast<double>(plan.parameter_elements()) * 2 * 32);
  EXPECT_GT(flops.model.count(), 0);
  EXPECT_GT(flops.all.count(), flops.model.count());
}

TEST(Strategies, AreTheOptionsThatTheyName) {
  const Options words = to_options(Strategy{.ranks = 2,
                                            .stage = 3,
                                            .unit = "chunk",
                                            .chunk_size = "1Mi",
                                            .learning_rate = 1e-3,
                                            .seed = 7,
                                            .more = {"--prefetch", "2"}});
  EXPECT_THAT(words, ElementsAre("--ranks", "2", "--stage", "3", "--unit", "chunk", "--chunk-size", "1Mi", "--lr",
                                 "0.001", "--seed", "7", "--prefetch", "2"));
  const auto model = Model::open("gpt2-nano");
  const auto of_struct = shardscope::compile(*model, Strategy{.ranks = 2, .stage = 2});
  const auto of_words = shardscope::compile(*model, Options{"--ranks", "2", "--stage", "2"});
  ASSERT_TRUE(of_struct && of_words);
  EXPECT_EQ(of_struct->hash(), of_words->hash());
}

TEST(Models, AreNamesFilesAndTexts) {
  const auto named = Model::open("gpt2-medium");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->parameter_elements(), 354'823'168);
  EXPECT_EQ(named->vocabulary(), 50257);
  EXPECT_EQ(named->longest_sequence(), 1024);
  const auto text = Model::open(R"({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16})");
  ASSERT_TRUE(text) << to_string(text.error());
  EXPECT_EQ(text->parameter_elements(), named->parameter_elements());
}

}  // namespace
}  // namespace shard::test
