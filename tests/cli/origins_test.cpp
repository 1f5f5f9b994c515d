// Do errors that name options by their values say where the values came from?
#include "sim/cli/origins.h"

#include <gtest/gtest.h>

namespace shard::cli {
namespace {

std::string shown(std::vector<std::string> arguments, std::string what) {
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
  return with_origins(command, {.code = Errc::contradiction, .what = std::move(what), .where = "", .help = ""}).what;
}

TEST(Origins, FollowTheirValues) {
  EXPECT_EQ(shown({"--ranks", "6", "--stage", "2"}, "--world-size 6 and --stage 2 differ"),
            "--world-size 6 (command line) and --stage 2 (command line) differ");
  EXPECT_EQ(shown({"--world-size", "6"}, "--stage 0 shards nothing"), "--stage 0 (default) shards nothing");
  EXPECT_EQ(shown({"--fast"}, "--fast is careless"), "--fast (command line) is careless");
}

TEST(Origins, OfOneOfSeveralValues) {
  EXPECT_EQ(shown({"--names", "a", "--names", "b,c"}, "--names c is none"), "--names c (command line) is none");
  EXPECT_EQ(shown({"--names", "a,b"}, "--names a b leaves none"), "--names a b (command line) leaves none");
  EXPECT_EQ(shown({"--names", "a,b"}, "--names d is none"), "--names d is none");
}

TEST(Origins, OfOtherValuesAreNotNamed) {
  EXPECT_EQ(shown({"--ranks", "6"}, "--world-size 64 and --stage 1"), "--world-size 64 and --stage 1");
  EXPECT_EQ(shown({}, "--faster is no option"), "--faster is no option");
}

}  // namespace
}  // namespace shard::cli
