// Does `simulate --program` answer as the command that kept the program did, and refuse what cannot be asked of one?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Keeps a program of two blocks; the answer beside it.
json keep(const std::string& file, const Words& more) {
  Words words{"simulate",
              "--model",
              "gpt2",
              "--like",
              "fsdp2",
              "--world-size",
              "4",
              "--stage",
              "3",
              "--precision",
              "bf16",
              "--micro-batch",
              "2",
              "--sequence",
              "128",
              "--cluster",
              "a100-40gb-x8",
              "--json",
              "--save-program",
              file};
  words.insert(words.end(), more.begin(), more.end());
  return json_of(shardscope(words));
}

TEST(KeptPrograms, AskedAgainTheyGiveTheSameAnswer) {
  const ScratchDirectory scratch;
  for (const Words& settings : {Words{}, Words{"--allocator-conf", "expandable_segments:True"}}) {
    const std::string file = scratch.file("kept.program");
    const json first = keep(file, settings);
    const json again = json_of(shardscope({"simulate", "--program", file, "--cluster", "a100-40gb-x8", "--json"}));
    for (const char* key :
         {"like", "model", "world_size", "rank", "fits", "verdict", "outside_allocator_bytes", "peak_uncertainty",
          "device_capacity_bytes", "peak_allocated_bytes", "peak_active_bytes", "peak_reserved_bytes", "inactive_bytes",
          "largest_gap_bytes", "phases", "moments", "largest_holders", "allocator", "optimizer_state_bytes"})
      EXPECT_EQ(again[key], first[key]) << key;
    EXPECT_EQ(again["program"], file);
  }
}

TEST(KeptPrograms, OnASmallerDeviceItDoesNotFit) {
  const ScratchDirectory scratch;
  const std::string file = scratch.file("kept.program");
  keep(file, {});
  const Words words{"simulate", "--program", file, "--device-capacity", "512Mi", "--json"};
  EXPECT_EQ(json_of(shardscope(words), 3)["fits"], false);
}

TEST(KeptPrograms, TheAllocatorsSettingsAreAsked) {
  const ScratchDirectory scratch;
  const std::string file = scratch.file("kept.program");
  const json first = keep(file, {});
  const json again =
      json_of(shardscope({"simulate", "--program", file, "--allocator-conf", "expandable_segments:True", "--json"}));
  EXPECT_LE(again["peak_allocated_bytes"], first["peak_allocated_bytes"]);
  EXPECT_LT(again["peak_reserved_bytes"], first["peak_reserved_bytes"]);
}

TEST(KeptPrograms, OtherOptionsAreRefusedByName) {
  const ScratchDirectory scratch;
  const std::string file = scratch.file("kept.program");
  keep(file, {});
  for (const Words& option :
       {Words{"--model", "gpt2"}, Words{"--stage", "2"}, Words{"--like", "fsdp2"}, Words{"--what-if"},
        Words{"--save-program", scratch.file("other")}, Words{"--nodes", "2"}}) {
    Words words{"simulate", "--program", file};
    words.insert(words.end(), option.begin(), option.end());
    const Outcome outcome = shardscope(words);
    EXPECT_EQ(outcome.exit_code, 78) << option.front();
    EXPECT_THAT(outcome.err, HasSubstr(option.front()));
  }
}

TEST(KeptPrograms, SettingsOfTheFileThatAreNoneAreTheFilesFault) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write(
      "kept.program", "shardscope program 1\nallocator max_split_size_mb:x\nworld_size 1\nrank 0\nend 0\n");
  const Outcome outcome = shardscope({"simulate", "--program", file});
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.err, HasSubstr("its allocator's settings"));
  EXPECT_EQ(shardscope({"simulate", "--program", file, "--allocator-conf", "max_split_size_mb:x"}).exit_code, 2);
  const Outcome of_nothing = shardscope(
      {"simulate", "--program", file, "--allocator-conf", "expandable_segments:True", "--memory-fraction", "0.5"});
  EXPECT_EQ(of_nothing.exit_code, 78);
  EXPECT_THAT(of_nothing.err, HasSubstr("--memory-fraction"));
}

TEST(KeptPrograms, AFileThatIsNoneIsRefusedWithItsLine) {
  const ScratchDirectory scratch;
  const Outcome other = shardscope({"simulate", "--program", scratch.write("a.txt", "hello\n")});
  EXPECT_EQ(other.exit_code, 65);
  EXPECT_THAT(other.err, HasSubstr("a.txt:1"));
  const Outcome absent = shardscope({"simulate", "--program", scratch.file("absent")});
  EXPECT_EQ(absent.exit_code, 66);
}

TEST(KeptPrograms, OfOldPyTorchTheyGiveTheSameAnswer) {
  const ScratchDirectory scratch;
  const std::string file = scratch.file("kept.program");
  const json first = json_of(shardscope({"simulate",
                                         "--model",
                                         "mlp-20x2000",
                                         "--world-size",
                                         "2",
                                         "--stage",
                                         "1",
                                         "--partition",
                                         "parameter",
                                         "--like",
                                         "pytorch@1.8",
                                         "--optimizer",
                                         "adam",
                                         "--micro-batch",
                                         "20",
                                         "--cluster",
                                         "a100-40gb-x8",
                                         "--json",
                                         "--save-program",
                                         file}));
  const json again = json_of(shardscope({"simulate", "--program", file, "--cluster", "a100-40gb-x8", "--json"}));
  for (const char* key : {"verdict", "outside_allocator_bytes", "peak_uncertainty", "moments", "peak_reserved_bytes"})
    EXPECT_EQ(again[key], first[key]) << key;
}

TEST(KeptPrograms, APyTorchSnapshotIsOneToo) {
  const ScratchDirectory scratch;
  const std::string file = scratch.file("predicted.pickle");
  const json first = keep(scratch.file("kept.program"), {"--trace", file});
  const json again = json_of(shardscope({"simulate", "--program", file, "--cluster", "a100-40gb-x8", "--json"}));
  for (const char* key : {"peak_allocated_bytes", "peak_active_bytes", "peak_reserved_bytes", "optimizer_state_bytes"})
    EXPECT_EQ(again[key], first[key]) << key;
}

TEST(KeptPrograms, AsCsvTheyAreTheSameTable) {
  const ScratchDirectory scratch;
  const std::string file = scratch.file("kept.program");
  keep(file, {});
  const Outcome csv = shardscope({"simulate", "--program", file, "--cluster", "a100-40gb-x8", "--format", "csv"});
  EXPECT_EQ(csv.exit_code, 0);
  EXPECT_THAT(csv.out, testing::StartsWith("moment,max_allocated_bytes"));
  EXPECT_THAT(csv.err, HasSubstr("fits: "));
}

TEST(KeptPrograms, WhereOurOwnExecutorAnswersInItsPlaceThereIsNone) {
  const ScratchDirectory scratch;
  const Outcome outcome =
      shardscope({"simulate", "--model", "mixtral-8x7b", "--cluster", "h100-80gb-x8", "--world-size", "8", "--stage",
                  "3", "--save-program", scratch.file("kept.program")});
  EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--save-program"));
  EXPECT_TRUE(scratch.list().empty());
}

TEST(KeptPrograms, OurOwnExecutorsPlanIsNone) {
  const ScratchDirectory scratch;
  const Outcome outcome =
      shardscope({"simulate", "--model", "mlp-20x2000", "--save-program", scratch.file("kept.program")});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.err, HasSubstr("--save-program"));
  EXPECT_TRUE(scratch.list().empty());
}

}  // namespace
}  // namespace shard::test
