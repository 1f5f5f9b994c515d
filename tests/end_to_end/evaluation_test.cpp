// Does `train --eval-every` say the loss of data that was not trained on, and leave everything else as it was?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

#include "tests/end_to_end/as_predicted.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Words evaluated_run(const Words& more) {
  Words words{"--model", "gpt2-nano", "--data", kText, "--sequence", "32", "--global-batch", "4", "--steps", "5"};
  words.insert(words.end(), more.begin(), more.end());
  return train(words);
}

TEST(Evaluation, IsSaidBehindStepsAndIsTheSameOnOtherRanks) {
  const ScratchDirectory scratch;
  const Words asked{"--eval-every", "2", "--eval-split", "0.2", "--eval-steps", "3", "--dropout", "0.1"};
  const auto answer = [&](Words words) {
    words.insert(words.end(), asked.begin(), asked.end());
    const Outcome outcome = shardscope(evaluated_run(words), {.directory = scratch.path()});
    EXPECT_THAT(outcome.err, HasSubstr("\neval 4/5  loss "));
    return json_of(outcome);
  };
  const json one = answer({"--log", "log.jsonl"});
  ASSERT_EQ(one["evaluations"].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(one["evaluations"][i]["evaluated_step"], (std::array{2, 4, 5}[i]));
  EXPECT_LT(one["evaluations"][2]["validation_loss"], one["evaluations"][0]["validation_loss"]);
  EXPECT_THAT(read_file(scratch.file("log.jsonl")), HasSubstr("{\"evaluated_step\":4,\"validation_loss\":"));
  const json four = answer({"--ranks", "4", "--stage", "3", "--unit", "tensor", "--trace", "measured.sst",
                            "--trace-predicted", "predicted.sst"});
  expect_as_predicted(four, 4);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(four["evaluations"][i]["validation_loss"], one["evaluations"][i]["validation_loss"]);
  EXPECT_EQ(four["state_sha256"], one["state_sha256"]);
  const Outcome compared =
      shardscope({"compare", "predicted.sst", "measured.sst", "--check"}, {.directory = scratch.path()});
  EXPECT_EQ(compared.exit_code, 0) << compared.out << compared.err;
}

TEST(Evaluation, OfDataOfItsOwnChangesNoNumberOfTheRun) {
  const json plain = json_of(shardscope(evaluated_run({})));
  EXPECT_TRUE(plain["validation_data"].is_null());
  EXPECT_TRUE(plain["evaluations"].empty());
  const json evaluated = json_of(shardscope(evaluated_run({"--eval-every", "1", "--eval-data", "random"})));
  EXPECT_EQ(evaluated["state_sha256"], plain["state_sha256"]);
  EXPECT_EQ(evaluated["data"], plain["data"]);
  EXPECT_EQ(evaluated["evaluations"].size(), 5U);
}

TEST(Evaluation, ARunThatGoesOnHasThoseOfTheRunThatWasNotInterrupted) {
  const ScratchDirectory scratch;
  const Words asked{"--eval-every", "2", "--eval-split", "0.2"};
  const auto answer = [&](Words words) {
    words.insert(words.end(), asked.begin(), asked.end());
    return json_of(shardscope(evaluated_run(words), {.directory = scratch.path()}));
  };
  const json whole = answer({"--save", "saved", "--save-every", "3"});
  const json resumed = answer({"--resume", "saved/step-00000003", "--ranks", "2", "--stage", "2"});
  ASSERT_EQ(resumed["evaluations"].size(), 2U);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(resumed["evaluations"][i]["validation_loss"], whole["evaluations"][i + 1]["validation_loss"]);
  // Without the split it would train on what was kept apart.
  const Outcome other = shardscope(evaluated_run({"--resume", "saved/step-00000003"}), {.directory = scratch.path()});
  EXPECT_EQ(other.exit_code, 78) << other.err;
  EXPECT_THAT(other.err, HasSubstr("data"));
}

TEST(Evaluation, OptionsThatGoTogetherSayTheirOther) {
  const auto refused = [&](const Words& words, int code = 78) {
    const Outcome outcome = shardscope(evaluated_run(words));
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused({"--eval-steps", "2"}), HasSubstr("--eval-every N"));
  EXPECT_THAT(refused({"--eval-every", "2"}), HasSubstr("--eval-split 0.1"));
  EXPECT_THAT(refused({"--eval-every", "2", "--eval-split", "0.1", "--eval-data", "random"}), HasSubstr("one of them"));
  const Outcome endless = shardscope(
      train({"--model", "gpt2-nano", "--data", "random", "--steps", "2", "--eval-every", "2", "--eval-split", "0.1"}));
  EXPECT_EQ(endless.exit_code, 78);
  EXPECT_THAT(endless.err, HasSubstr("--eval-data random"));
  EXPECT_THAT(refused({"--eval-every", "2", "--eval-split", "0.000001"}), HasSubstr("this part holds"));
  EXPECT_THAT(refused({"--eval-every", "2", "--eval-data", "text:nowhere"}, 66), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace shard::test
