// Are wrong inputs answered with an error that names them, and with nothing else?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <shardscope/shardscope.h>

#include <fstream>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using shardscope::Model;
using shardscope::Options;
using shardscope::Training;
using testing::HasSubstr;

/// What is printed while it lives is a failure.
class Silence {
 public:
  Silence() {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
  }
  ~Silence() {
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
};

struct Mistake {
  Options options;
  Errc code;
  std::string named;
};

TEST(Faults, OfOptionsAreNamed) {
  const Silence silence;
  const auto model = Model::open("gpt2-nano");
  ASSERT_TRUE(model);
  const std::vector<Mistake> mistakes{
      {{"--stage", "7"}, Errc::usage, "stage"},
      {{"--stgae", "3"}, Errc::usage, "--stgae"},
      {{"--ranks"}, Errc::usage, "--world-size"},
      {{"--unit", "banana"}, Errc::usage, "banana"},
      {{"--model", "gpt2"}, Errc::usage, "--model"},
      {{"--help"}, Errc::usage, "--help"},
      {{"--ranks", "3", "--global-batch", "4"}, Errc::contradiction, "global-batch"},
      {{"--sequence", "4096"}, Errc::contradiction, "4096"},
      {{"--trace", "measured.sst"}, Errc::contradiction, "--trace"},
      {{"--json"}, Errc::contradiction, "--json"},
      {{"--save-weights", "/tmp"}, Errc::contradiction, "--save-weights"},
      {{"--weights", "/nowhere/at/all"}, Errc::no_input, "/nowhere/at/all"},
      {{"--print-config"}, Errc::contradiction, "--print-config"},
      {{"--device", "cuda"}, Errc::unavailable, "--device"},
      {{"--data", "text:/nowhere/at/all"}, Errc::no_input, "/nowhere/at/all"},
      {{"--cluster", "/nowhere/at/all.json"}, Errc::no_input, "/nowhere/at/all.json"},
      {{"--config", "/nowhere/at/all.conf"}, Errc::no_input, "/nowhere/at/all.conf"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto plan = shardscope::compile(*model, mistake.options);
    ASSERT_FALSE(plan) << mistake.named;
    EXPECT_EQ(plan.error().code, mistake.code) << to_string(plan.error());
    EXPECT_THAT(to_string(plan.error()), HasSubstr(mistake.named));
  }
}

TEST(Faults, OfModelsAreNamed) {
  const Silence silence;
  const std::vector<std::tuple<std::string, Errc, std::string>> mistakes{
      {"gtp2-nano", Errc::usage, "gtp2-nano"},
      {"/nowhere/config.json", Errc::no_input, "/nowhere/config.json"},
      {R"({"model_type": "gpt2", "n_embd": })", Errc::malformed, ""},
      {R"({"model_type": "no_such_family"})", Errc::contradiction, "no_such_family"},
  };
  for (const auto& [what, code, named] : mistakes) {
    const auto model = Model::open(what);
    ASSERT_FALSE(model) << what;
    EXPECT_EQ(model.error().code, code) << to_string(model.error());
    EXPECT_THAT(to_string(model.error()), HasSubstr(named));
  }
}

TEST(Faults, AModelThatCannotBeTrainedSaysWhatIsMissing) {
  const Silence silence;
  const auto model = Model::open(R"({"model_type": "bert"})");
  ASSERT_TRUE(model);
  const auto plan = shardscope::compile(*model, Options{});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Errc::contradiction);
  EXPECT_THAT(to_string(plan.error()), HasSubstr("bert"));
}

TEST(Faults, WhatDoesNotFitIsPredictedAndNotStarted) {
  const Silence silence;
  const auto plan = shardscope::compile(*Model::open("gpt2-nano"), Options{"--device-capacity", "4Mi"});
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_GT(plan->peak(0)->device, Bytes{4 << 20});
  const auto training = Training::start(*plan);
  ASSERT_FALSE(training);
  EXPECT_EQ(training.error().code, Errc::does_not_fit);
  EXPECT_THAT(to_string(training.error()), HasSubstr("--device-capacity"));
}

TEST(Faults, OfTokensAreNamedAndChangeNothing) {
  const Silence silence;
  const Options options{"--sequence", "8", "--ranks", "2"};
  const auto plan = shardscope::compile(*Model::open("gpt2-nano"), options);
  auto training = Training::start(*plan);
  ASSERT_TRUE(training);
  std::vector<std::int32_t> tokens(2 * 9, 1);
  EXPECT_THAT(training->step(std::span(tokens).first(17)).error().what, HasSubstr("17 tokens, and a step takes 18"));
  tokens[11] = -1;
  EXPECT_THAT(training->step(tokens).error().what, HasSubstr("token -1 at row 1, place 2"));
  tokens[11] = 1 << 20;
  EXPECT_EQ(training->step(tokens).error().code, Errc::contradiction);
  tokens[11] = 1;
  const auto step = training->step(tokens);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->number, 1);
}

TEST(Faults, OfARankEndAllAndStay) {
  const Silence silence;
  const ScratchDirectory scratch;
  const std::string file = scratch.write("tokens.bin", std::string(4096, '\1'));
  const auto plan =
      shardscope::compile(*Model::open(R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2})"),
                          Options{"--data", file, "--ranks", "2", "--sequence", "8", "--stage", "3"});
  ASSERT_TRUE(plan) << to_string(plan.error());
  auto training = Training::start(*plan);
  ASSERT_TRUE(training) << to_string(training.error());
  ASSERT_TRUE(training->step());
  std::filesystem::resize_file(file, 2);
  std::string said;
  for (int n = 0; n < 3; ++n) {
    const auto step = training->step();
    ASSERT_FALSE(step);
    EXPECT_THAT(to_string(step.error()), HasSubstr("tokens.bin"));
    EXPECT_EQ(to_string(step.error()), n > 0 ? said : to_string(step.error()));
    said = to_string(step.error());
  }
  EXPECT_EQ(to_string(training->state_sha256().error()), said);
}

TEST(Faults, TooManyRanksAreRefused) {
  const Silence silence;
  const auto plan = shardscope::compile(*Model::open("gpt2-nano"), Options{"--ranks", "512", "--sequence", "8"});
  ASSERT_TRUE(plan) << to_string(plan.error());
  const auto training = Training::start(*plan);
  ASSERT_FALSE(training);
  EXPECT_THAT(training.error().what, HasSubstr("512"));
}

}  // namespace
}  // namespace shard::test
