// Does a run that has no numbers any more end as documented, on every device and with every kind of rank?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* kTiny =
    R"({"model_type":"gpt2","vocab_size":16,"n_positions":8,"n_embd":8,"n_layer":1,"n_head":2})";

const std::vector<Words> kRanks{{"--ranks", "1"},
                                {"--ranks", "2", "--stage", "3"},
                                {"--device", "emulated-cuda"},
                                {"--ranks", "2", "--stage", "1", "--device", "emulated-cuda"}};

Outcome train_tiny(const ScratchDirectory& scratch, const Words& ranks, const Words& more) {
  Words words{"train", "--model", kTiny, "--data", "random", "--sequence", "8"};
  words.insert(words.end(), ranks.begin(), ranks.end());
  words.insert(words.end(), more.begin(), more.end());
  return shardscope(words, {.directory = scratch.path()});
}

// An infinite rate: parameters are lost in the first step and the loss in the second.
const Words kDiverging{"--optimizer", "sgd", "--lr", "1e300", "--steps", "3"};

TEST(TrainWithoutNumbers, EndsWhereTheLossIsNone) {
  for (const Words& ranks : kRanks) {
    const ScratchDirectory scratch;
    Words words = kDiverging;
    words.insert(words.end(), {"--save-weights", "saved", "--trace", "measured.sst"});
    const Outcome outcome = train_tiny(scratch, ranks, words);
    EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("step 2"), HasSubstr("the loss is nan"), HasSubstr("rank 0"),
                                   HasSubstr("--keep-going")));
    EXPECT_THAT(outcome.err, AnyOf(HasSubstr("transformer.wte.weight was not finite behind step 1"),
                                   HasSubstr("first that of micro-batch 1 of")));
    EXPECT_THAT(scratch.list(), testing::Not(testing::Contains(HasSubstr("safetensors"))));
  }
}

TEST(TrainWithoutNumbers, EndsWhereTheLastStepLostThem) {
  for (const Words& ranks : kRanks) {
    const ScratchDirectory scratch;
    const Outcome outcome = train_tiny(scratch, ranks, {"--optimizer", "sgd", "--lr", "1e300", "--steps", "1"});
    EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("step 1"), HasSubstr("transformer.wte.weight was not finite")));
  }
}

TEST(TrainWithoutNumbers, GoesOnWhereThatIsAskedFor) {
  for (const Words& ranks : kRanks) {
    const ScratchDirectory scratch;
    Words words = kDiverging;
    words.insert(words.end(), {"--keep-going", "--json"});
    const json done = json_of(train_tiny(scratch, ranks, words));
    ASSERT_EQ(done["steps"].size(), 3U);
    EXPECT_EQ(done["steps"][2]["loss"], nullptr);
  }
}

TEST(TrainWithoutNumbers, EndsWhereWeightsHaveNone) {
  std::string bytes = read_file(TEST_DATA "/data/weights/gpt2_base.safetensors");
  bytes.replace(bytes.size() - 4, 4, std::string("\0\0\xC0\x7F", 4));
  for (const Words& ranks : kRanks) {
    const ScratchDirectory scratch;
    scratch.write("lost.safetensors", bytes);
    const Outcome outcome = train_tiny(scratch, ranks, {"--weights", "lost.safetensors", "--steps", "1"});
    EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("lost.safetensors"), HasSubstr("tensor"), HasSubstr("not a number")));
    EXPECT_EQ(train_tiny(scratch, ranks, {"--weights", "lost.safetensors", "--steps", "1", "--keep-going"}).exit_code,
              0);
  }
}

}  // namespace
}  // namespace shard::test
