// Do a prediction and a run of another length compare as equal, step by step and op by op, whatever the strategy?
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class OnePicture : public testing::TestWithParam<Words> {};

TEST_P(OnePicture, RunsOfOtherLengthAreEqualByStepAndByOp) {
  const ScratchDirectory scratch;
  const Words common = with({"--model", "gpt2-nano", "--micro-batch", "2", "--sequence", "64"}, GetParam());
  const std::string predicted = scratch.file("predicted.sst"), measured = scratch.file("measured.sst");
  ASSERT_EQ(shardscope(with(with({"simulate"}, common), {"--trace", predicted})).exit_code, 0);
  const Outcome run =
      shardscope(with(with({"train"}, common), {"--data", "random", "--steps", "4", "--trace", measured}));
  ASSERT_EQ(run.exit_code, 0) << run.err;

  const json compared = json_of(shardscope({"compare", predicted, measured, "--json", "--check"}));
  EXPECT_EQ(compared["steps"], (json{{"predicted", 2}, {"measured", 4}}));
  EXPECT_EQ(compared["communication_equal"], true);
  EXPECT_EQ(compared["memory_by_op"], (json{{"largest_difference_bytes", 0}}));
  for (const json& row : compared["collectives"]) EXPECT_TRUE(row["phase"].is_string()) << row;

  if (!std::filesystem::exists(programs_directory() + "/shardscope-view")) return;
  const json drawn =
      json_of(shardscope({"view", predicted, measured, "--screenshot", scratch.file("p.png"), "--json"}));
  ASSERT_EQ(drawn["comparisons"].size(), 1u);
  EXPECT_EQ(drawn["comparisons"][0]["largest_memory_difference_bytes"], 0);
  EXPECT_EQ(drawn["comparisons"][0]["at_op"], nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, OnePicture,
    testing::Values(Words{}, Words{"--world-size", "2", "--stage", "3", "--unit", "chunk"},
                    Words{"--world-size", "2", "--stage", "2", "--unit", "bucket", "--placement", "host"},
                    Words{"--world-size", "4", "--stage", "1", "--recompute", "block", "--precision", "bf16"},
                    Words{"--world-size", "2", "--tensor-parallel", "2", "--clip-norm", "1"},
                    Words{"--world-size", "2", "--stage", "3", "--unit", "tensor", "--global-batch", "8"}));

TEST(OnePictureOfTwoPlans, SaysWhereTheyPart) {
  const ScratchDirectory scratch;
  const Words common{"--model", "gpt2-nano", "--micro-batch", "1", "--sequence", "32", "--world-size", "2"};
  const std::string a = scratch.file("a.sst"), b = scratch.file("b.sst");
  ASSERT_EQ(shardscope(with(with({"simulate"}, common), {"--stage", "1", "--trace", a})).exit_code, 0);
  ASSERT_EQ(shardscope(with(with({"simulate"}, common), {"--stage", "2", "--trace", b})).exit_code, 0);
  const json compared = json_of(shardscope({"compare", a, b, "--force", "--json"}));
  EXPECT_EQ(compared["memory_equal"], false);
  const json by_op = compared["memory_by_op"];
  EXPECT_GT(by_op["largest_difference_bytes"], 0);
  EXPECT_FALSE(by_op["at"]["op"].get<std::string>().empty());
  EXPECT_NE(by_op["begin"]["difference_bytes"], 0);
  EXPECT_EQ(compared["steps"], (json{{"a", 2}, {"b", 2}}));
}

}  // namespace
}  // namespace shard::test
