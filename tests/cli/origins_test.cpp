// Do errors that name options by their values say where the values came from?
#include "sim/cli/origins.h"

#include <gtest/gtest.h>

#include <utility>

#include "traces/base/mentions.h"

namespace shard::cli {
namespace {

Error shown(std::vector<std::string> arguments, Error error) {
  int ranks = 1;
  int stage = 0;
  bool fast = false;
  std::vector<std::string> names;
  Command command("shardscope", "test", "summary", "");
  Group group = command.group("All");
  group.add("world-size", &ranks, "N", "number").alias("ranks");
  group.add("stage", &stage, "N", "number");
  group.add("names", &names, "NAME[,...]", "several");
  group.add_flag("fast", &fast, "no care");
  const auto parsed = command.parse(arguments);
  EXPECT_TRUE(parsed);
  return with_origins(command, std::move(error));
}

std::string shown(std::vector<std::string> arguments, std::initializer_list<Piece> pieces) {
  return shown(std::move(arguments), contradiction_of(pieces, "", "")).what;
}

TEST(Origins, FollowTheirValues) {
  EXPECT_EQ(shown({"--ranks", "6", "--stage", "2"},
                  {option_piece("world-size", "6"), " and ", option_piece("stage", "2"), " differ"}),
            "--world-size 6 (command line) and --stage 2 (command line) differ");
  EXPECT_EQ(shown({"--world-size", "6"}, {option_piece("stage", "0"), " shards nothing"}),
            "--stage 0 (default) shards nothing");
  EXPECT_EQ(shown({"--fast"}, {Piece("fast", "--fast"), " is careless"}), "--fast (command line) is careless");
}

TEST(Origins, OfOneOfSeveralValues) {
  EXPECT_EQ(shown({"--names", "a", "--names", "b,c"}, {option_piece("names", "c"), " is none"}),
            "--names c (command line) is none");
  EXPECT_EQ(shown({"--names", "a,b"}, {option_piece("names", "a b"), " leaves none"}),
            "--names a b (command line) leaves none");
}

TEST(Origins, OfWhatIsNotMentionedAreNotNamed) {
  EXPECT_EQ(shown({"--ranks", "6"}, {"--world-size 6 and ", option_piece("stages", "1")}),
            "--world-size 6 and --stages 1");
}

TEST(Origins, AnErrorCanBeWhereAnOptionIs) {
  Error error = contradiction_of({"no part is even"}, "model", "");
  error.mentions.push_back({.option = "stage", .end = Mention::kWhere});
  EXPECT_EQ(shown({"--stage", "3"}, std::move(error)).where, "--stage 3 (command line)");
}

}  // namespace
}  // namespace shard::cli
