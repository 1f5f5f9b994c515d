// Is a tool what its command declares, and does a call become the command line that a user would have typed?
#include "sim/mcp/tools.h"

#include <gtest/gtest.h>

#include "sim/cli/command_line.h"
#include "sim/cli/output.h"

namespace shard::mcp {
namespace {

using Words = std::vector<std::string>;

/// A command with an option of each kind, described as --help=json does.
cli::CommandDescription described(bool takes_lists = false) {
  std::vector<std::string> files;
  std::vector<std::string> several;
  std::string text;
  std::string unit = "module";
  int count = 3;
  double share = 0.5;
  Bytes size{1 << 20};
  bool flag = false;
  bool on = true;
  cli::OutputOptions output;
  cli::Command command("shardscope", "probe", "probes", "It probes.\n");
  command.add_positional("FILE", &files, "what is read").required().reads_file();
  cli::Group group = command.group("Probe");
  group.add("ranks-of", &count, "N", "how many").least(1).most(8).alias("count");
  group.add("share", &share, "SHARE", "which part").least(0).most(1);
  group.add("size", &size, "BYTES", "how much");
  group.add("name", &text, "NAME|usual", "which one");
  group.add_choice<std::string>("unit", &unit, {{"tensor", "tensor"}, {"module", "module"}}, "of what");
  group.add("each", &several, "TEXT", "one of many");
  group.add_flag("deep", &flag, "goes deep");
  group.add_switch("wide", &on, "goes wide");
  cli::add_output_options(command, output);
  if (takes_lists) command.take_lists([](const std::string&, const std::vector<std::string>&) { return 0; });
  command.followed_by("-- PROGRAM [ARGUMENT...]");
  const Result<cli::CommandDescription> read = cli::parse_description(cli::to_json_text(command.description()));
  EXPECT_TRUE(read);
  return read ? *read : cli::CommandDescription{};
}

TEST(Tools, TellOptionsWithTypesBoundsAndWords) {
  const Json tool = tool_of(described());
  EXPECT_EQ(tool["name"], "probe");
  const Json& has = tool["inputSchema"]["properties"];
  EXPECT_EQ(has["ranks-of"]["type"], "integer");
  EXPECT_EQ(has["ranks-of"]["minimum"], 1);
  EXPECT_EQ(has["ranks-of"]["maximum"], 8);
  EXPECT_EQ(has["ranks-of"]["description"], "how many (default: 3)");
  EXPECT_EQ(has["share"]["type"], "number");
  EXPECT_EQ(has["size"]["type"], "string");  // "40GiB"
  EXPECT_EQ(has["name"]["examples"], Json({"usual"}));
  EXPECT_FALSE(has["name"].contains("enum"));
  EXPECT_EQ(has["unit"]["enum"], Json({"tensor", "module"}));
  EXPECT_EQ(has["each"]["type"], "array");
  EXPECT_EQ(has["deep"]["type"], "boolean");
  EXPECT_EQ(has["file"]["type"], "array");
  EXPECT_EQ(has["command"]["type"], "array");
  for (const char* const own : {"json", "format"}) EXPECT_FALSE(has.contains(own)) << own;
  EXPECT_EQ(tool_of(described(true))["inputSchema"]["properties"]["ranks-of"]["type"], "string");
}

TEST(Tools, CallsAreCommandLines) {
  const cli::CommandDescription command = described();
  const auto words = [&](const char* arguments) {
    const auto made = words_of(command, Json::parse(arguments));
    return made ? *made : Words{made.error().what};
  };
  EXPECT_EQ(words("{}"), (Words{"probe", "--json"}));
  EXPECT_EQ(words(R"({"ranks_of": 4, "share": 0.25, "size": "1Gi", "unit": "tensor", "name": null})"),
            (Words{"probe", "--json", "--ranks-of=4", "--share=0.25", "--size=1Gi", "--unit=tensor"}));
  EXPECT_EQ(words(R"({"deep": true, "wide": false})"), (Words{"probe", "--json", "--deep", "--no-wide"}));
  EXPECT_EQ(words(R"({"deep": false, "wide": "true"})"), (Words{"probe", "--json", "--wide"}));
  EXPECT_EQ(words(R"({"each": ["a", "b"]})"), (Words{"probe", "--json", "--each=a", "--each=b"}));
  EXPECT_EQ(words(R"({"command": ["python3", "-c", "--x"], "file": ["a", "-b"], "deep": true})"),
            (Words{"probe", "--json", "--deep", "a", "./-b", "--", "python3", "-c", "--x"}));
  EXPECT_EQ(words(R"({"help": "all"})"), (Words{"probe", "--json", "--help=all"}));
  EXPECT_EQ(words(R"({"unheard-of": 1})"), (Words{"probe", "--json", "--unheard-of=1"}));  // the command suggests
  EXPECT_EQ(words_of(described(true), Json::parse(R"({"unit": ["tensor", "module"]})")).value(),
            (Words{"probe", "--json", "--unit=tensor,module"}));
}

TEST(Tools, WhatNoCommandLineHasIsRefused) {
  for (const char* const arguments :
       {R"({"share": {"a": 1}})", R"({"share": [[1]]})", R"({"name": "a\u0000b"})", R"({"": 1})", R"({"-x": 1})",
        R"({"a b": 1})", R"({"a=b": 1})", R"({"format": "csv"})", R"({"json": false})"}) {
    const auto words = words_of(described(), Json::parse(arguments));
    ASSERT_FALSE(words) << arguments;
    EXPECT_EQ(words.error().code, Errc::usage) << arguments;
  }
}

TEST(Answers, OfAnObjectAreStructuredAndSoAreErrors) {
  const Json fits_not = answer_of(Finished{3, "{\"fits\": false}\n", ""});
  EXPECT_EQ(fits_not["structuredContent"]["fits"], false);
  EXPECT_EQ(fits_not["isError"], false);
  EXPECT_EQ(fits_not["content"][0]["text"], "{\"fits\": false}\n");
  const Json failed = answer_of(Finished{139, "", "what it had said\n"});
  EXPECT_EQ(failed["isError"], true);
  EXPECT_EQ(failed["structuredContent"], Json({{"error", {{"exit_code", 139}, {"what", "what it had said"}}}}));
  EXPECT_EQ(answer_of(Finished{0, "help", ""})["isError"], false);
  EXPECT_FALSE(answer_of(Finished{0, "help", ""}).contains("structuredContent"));
  EXPECT_EQ(answer_of(Finished{65, "{}", "x"})["isError"], true);
  EXPECT_EQ(answer_of(Finished{143, "", ""})["isError"], true);
  EXPECT_EQ(
      answer_of(Error{Errc::usage, "is wrong", "x", "y"})["structuredContent"],
      Json({{"schema_version", 1},
            {"error", {{"code", "usage"}, {"exit_code", 2}, {"what", "is wrong"}, {"where", "x"}, {"help", "y"}}}}));
}

}  // namespace
}  // namespace shard::mcp
