// Does `shardscope verify` say what it compared, with equal bits and without, on every kind of device?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Words verify(const Words& more) {
  Words words{"verify", "--model", "gpt2-nano", "--data", "random", "--sequence", "16", "--steps", "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Verify, SaysBitIdentical) {
  const Outcome plain = shardscope(verify({"--ranks", "2", "--stage", "3", "--precision", "bf16"}));
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.out,
              HasSubstr("compared  with stage 0 on one rank, 2 steps; all ranks are threads of this process\n"));
  EXPECT_THAT(plain.out, HasSubstr("bit-identical: every value, moment and loss of 2 steps, on every rank\n"));
  const json j = json_of(shardscope(verify({"--ranks", "2", "--stage", "3", "--precision", "bf16", "--json"})));
  EXPECT_EQ(j["command"], "verify");
  EXPECT_EQ(j["bit_identical"], true);
  EXPECT_EQ(j["bits_promised"], true);
  EXPECT_EQ(j["first_difference"], nullptr);
  EXPECT_EQ(j["largest_difference"], nullptr);
  EXPECT_EQ(j["step_count"], 2);
  EXPECT_EQ(j["strategy"]["stage"], 3);
  EXPECT_EQ(j["reference_strategy"]["stage"], 0);
  EXPECT_EQ(j["reference_strategy"]["world_size"], 1);
  EXPECT_EQ(j["losses"].size(), 2U);
  EXPECT_EQ(j["losses"], j["reference_losses"]);
  EXPECT_EQ(j["state_sha256"], j["reference_state_sha256"]);
}

/// The digest is that of the run that `train` would make.
TEST(Verify, ComparesWhatTrainTrains) {
  const Words more{"--stage", "2", "--lr", "0.01", "--json"};
  const json verified = json_of(shardscope(verify(more)));
  Words train = verify(more);
  train.front() = "train";
  EXPECT_EQ(verified["state_sha256"], json_of(shardscope(train))["state_sha256"]);
}

TEST(Verify, SaysWhereBitsAreNotPromised) {
  const Outcome outcome =
      shardscope(verify({"--ranks", "4", "--global-batch", "16", "--stage", "2", "--no-reproducible", "--json"}));
  const json j = json_of(outcome, 1);
  EXPECT_THAT(outcome.err, HasSubstr("equal bits are not promised"));
  EXPECT_EQ(j["bits_promised"], false);
  EXPECT_EQ(j["bit_identical"], false);
  EXPECT_EQ(j["first_difference"]["step"], 1);
  EXPECT_EQ(j["first_difference"]["what"], "first_moment");
  EXPECT_TRUE(j["first_difference"]["tensor"].is_string());
  EXPECT_NE(j["first_difference"]["value"], j["first_difference"]["reference_value"]);
  EXPECT_GT(j["first_difference"]["differing_parameters"], 0);
  EXPECT_GT(j["largest_difference"]["relative"], 0);
  EXPECT_LT(j["largest_difference"]["relative"], 0.1);
  EXPECT_NE(j["state_sha256"], j["reference_state_sha256"]);
}

TEST(Verify, ComparesRanksThatShareAModelWithAsMany) {
  const json j = json_of(shardscope(verify({"--ranks", "4", "--tensor-parallel", "2", "--stage", "1", "--json"})));
  EXPECT_EQ(j["bit_identical"], true);
  EXPECT_EQ(j["reference_strategy"]["world_size"], 2);
  EXPECT_EQ(j["reference_strategy"]["tensor_parallel"], 2);
}

TEST(Verify, RunsOnTheEmulatedDevice) {
  const json j = json_of(shardscope(verify({"--ranks", "2", "--stage", "2", "--device", "emulated-cuda", "--json"})));
  EXPECT_EQ(j["bit_identical"], true);
}

TEST(Verify, ARunWithPipelinesIsNotProvedAsOneWithout) {
  const ScratchDirectory scratch;
  const std::string script =
      scratch.write("pretrain.sh", "python pretrain_gpt.py --micro-batch-size 1 --pipeline-model-parallel-size 2\n");
  const Outcome refused = shardscope(verify({"--megatron-args", script}));
  EXPECT_EQ(refused.exit_code, 78) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("/pipeline-model-parallel-size"));
}

TEST(Verify, IsNotForALauncher) {
  const Outcome outcome =
      shardscope(verify({}), {.environment = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}});
  EXPECT_EQ(outcome.exit_code, 78) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("threads of one process"));
}

}  // namespace
}  // namespace shard::test
