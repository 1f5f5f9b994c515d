// Does a run that has no numbers any more say so, and who lost them first?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <shardscope/shardscope.h>

#include <cmath>

#include "tests/api/trainings.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using shardscope::Model;
using shardscope::Options;
using shardscope::Training;
using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* kTiny =
    R"({"model_type":"gpt2","vocab_size":16,"n_positions":8,"n_embd":8,"n_layer":1,"n_head":2})";

Result<Training> start(const Options& options) {
  const auto plan = shardscope::compile(*Model::open(kTiny), with({"--sequence", "8"}, options));
  if (!plan) return plan.error();
  return Training::start(*plan);
}

const std::vector<Options> kShardings{
    {}, {"--ranks", "2", "--stage", "3", "--unit", "chunk"}, {"--ranks", "2", "--stage", "1"}, {"--ranks", "4"}};

TEST(NoNumbers, InWeightsAreNamedByFileAndTensor) {
  const ScratchDirectory scratch;
  std::string bytes = read_file(TEST_DATA "/data/weights/gpt2_base.safetensors");
  for (const auto& [last, word] : {std::pair{std::string("\0\0\xC0\x7F", 4), "not a number"},
                                   std::pair{std::string("\0\0\x80\xFF", 4), "infinite"}}) {
    bytes.replace(bytes.size() - 4, 4, last);
    const std::string file = scratch.write("lost.safetensors", bytes);
    for (const Options& sharding : kShardings) {
      const Options options = with(sharding, {"--weights", file});
      const auto training = start(options);
      ASSERT_FALSE(training);
      EXPECT_EQ(training.error().code, Errc::malformed);
      EXPECT_THAT(training.error().where, HasSubstr("lost.safetensors"));
      EXPECT_THAT(training.error().what, HasSubstr(word));
      EXPECT_THAT(training.error().what, HasSubstr("tensor"));
      auto going = start(with(options, {"--keep-going"}));
      ASSERT_TRUE(going) << to_string(going.error());
      EXPECT_TRUE(going->step());
    }
  }
}

// An infinite rate: the first step's gradients are finite and its parameters are not.
const Options kDiverging{"--optimizer", "sgd", "--lr", "1e300"};

TEST(NoNumbers, InTheLossEndTheRunAndTheParameterIsNamed) {
  for (const Options& sharding : kShardings) {
    auto training = start(with(sharding, kDiverging));
    ASSERT_TRUE(training) << to_string(training.error());
    ASSERT_TRUE(training->step());
    const auto step = training->step();
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().code, Errc::contradiction);
    EXPECT_EQ(step.error().where, "step 2");
    EXPECT_THAT(step.error().what, HasSubstr("the loss is nan: parameter transformer.wte.weight was not finite behind"
                                             " step 1 on rank 0"));
    EXPECT_EQ(to_string(training->step().error()), to_string(step.error()));
  }
}

TEST(NoNumbers, OfTheLastStepAreFoundInTheState) {
  for (const Options& sharding : kShardings) {
    auto training = start(with(sharding, kDiverging));
    ASSERT_TRUE(training->step());
    const auto state = training->state_sha256();
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code, Errc::contradiction);
    EXPECT_EQ(state.error().where, "step 1");
    EXPECT_THAT(state.error().what, HasSubstr("transformer.wte.weight"));
  }
}

// Parameters that are finite and too large for what is computed with them.
TEST(NoNumbers, AMicroBatchIsNamedWhereParametersAreFinite) {
  for (const Options& sharding : kShardings) {
    auto training = start(with(sharding, {"--optimizer", "sgd", "--lr", "1e37", "--global-batch", "4"}));
    ASSERT_TRUE(training->step());
    const auto step = training->step();
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().where, "step 2");
    EXPECT_THAT(step.error().what, HasSubstr("first that of micro-batch 1 of 4, on rank 0"));
  }
}

TEST(NoNumbers, AreTrainedOnWhereThatIsAskedFor) {
  for (const Options& sharding : kShardings) {
    auto training = start(with(with(sharding, kDiverging), {"--keep-going"}));
    ASSERT_TRUE(training->step());
    for (int n = 0; n < 2; ++n) {
      const auto step = training->step();
      ASSERT_TRUE(step) << to_string(step.error());
      EXPECT_TRUE(std::isnan(step->loss));
    }
    EXPECT_TRUE(training->state_sha256());
  }
}

}  // namespace
}  // namespace shard::test
