// Does `shardscope mcp` speak its protocol through pipes, and answer as the commands themselves do?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// What the server answers to these lines, by their order; it is to end with them, and to say nothing else.
std::vector<json> answers_to(const std::vector<std::string>& lines) {
  const ScratchDirectory scratch;
  std::string input;
  for (const std::string& line : lines) input += line + "\n";
  const std::string file = scratch.write("input", input);
  const Outcome outcome = run({"sh", "-c", "exec \"$0\" mcp < \"$1\"", shardscope_path(), file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  std::vector<json> answers;
  std::istringstream out(outcome.out);
  for (std::string line; std::getline(out, line);) {
    answers.push_back(json::parse(line, nullptr, false));
    EXPECT_TRUE(answers.back().is_object() || answers.back().is_array()) << line.substr(0, 400);
  }
  return answers;
}

std::string request(const json& id, const std::string& method, const json& params = json::object()) {
  return json({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}).dump();
}

std::string call(const json& id, const std::string& tool, const json& arguments) {
  return request(id, "tools/call", {{"name", tool}, {"arguments", arguments}});
}

json result_of_call(const std::string& tool, const json& arguments) {
  const std::vector<json> answers = answers_to({call(1, tool, arguments)});
  EXPECT_EQ(answers.size(), 1u);
  return answers.empty() ? json::object() : answers.front().value("result", json::object());
}

TEST(Mcp, BeginsWithTheClientsVersionAndEndsWithItsInput) {
  const std::vector<json> answers =
      answers_to({request(1, "initialize", {{"protocolVersion", "2025-03-26"}, {"capabilities", json::object()}}),
                  R"({"jsonrpc":"2.0","method":"notifications/initialized"})", request("two", "ping")});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0]["id"], 1);
  EXPECT_EQ(answers[0]["result"]["protocolVersion"], "2025-03-26");
  EXPECT_TRUE(answers[0]["result"]["capabilities"].contains("tools"));
  EXPECT_EQ(answers[0]["result"]["serverInfo"]["name"], "shardscope");
  EXPECT_EQ(answers[1], json({{"jsonrpc", "2.0"}, {"id", "two"}, {"result", json::object()}}));
  EXPECT_EQ(answers_to({}).size(), 0u);
  EXPECT_EQ(
      answers_to({request(1, "initialize", {{"protocolVersion", "1999-01-01"}})}).at(0)["result"]["protocolVersion"],
      "2025-06-18");
}

TEST(Mcp, EveryPropertyOfAToolIsAnArgumentOfItsCommand) {
  const json tools = answers_to({request(1, "tools/list")}).at(0)["result"]["tools"];
  ASSERT_GE(tools.size(), 6u);
  std::vector<std::string> names;
  for (const json& tool : tools) {
    const std::string name = tool["name"];
    names.push_back(name);
    const json command = json_of(shardscope({name, "--help=json"}));
    std::vector<std::string> known;
    for (const json& group : command["groups"])
      for (const json& option : group["options"]) known.push_back(option["name"]);
    for (const json& each : command["positionals"]) {
      std::string positional = each["name"];
      std::ranges::transform(positional, positional.begin(), [](unsigned char c) { return std::tolower(c); });
      known.push_back(positional);
      EXPECT_TRUE(tool["inputSchema"]["properties"].contains(positional)) << name;
    }
    if (command["followed_by"] != "") known.emplace_back("command");
    EXPECT_GE(tool["inputSchema"]["properties"].size(), 3u) << name;
    for (const auto& [property, schema] : tool["inputSchema"]["properties"].items()) {
      EXPECT_THAT(known, testing::Contains(property)) << name;
      EXPECT_FALSE(schema["description"].get<std::string>().empty()) << name << " " << property;
      EXPECT_TRUE(schema.contains("type")) << name << " " << property;
    }
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"simulate", "inspect", "search", "sweep", "validate", "compare"}));
}

TEST(Mcp, ACallAnswersAsTheCommandDoes) {
  const json result =
      result_of_call("simulate", {{"model", "gpt2"}, {"world_size", 4}, {"stage", 2}, {"cluster", "a100-40gb-x8"}});
  const Outcome typed = shardscope(
      {"simulate", "--json", "--model", "gpt2", "--world-size", "4", "--stage", "2", "--cluster", "a100-40gb-x8"});
  EXPECT_EQ(result["isError"], false);
  EXPECT_EQ(result["structuredContent"], json_of(typed));
  EXPECT_EQ(result["content"][0]["type"], "text");
  EXPECT_EQ(result["content"][0]["text"], typed.out);
  EXPECT_THAT(result_of_call("search", {{"help", "all"}})["content"][0]["text"].get<std::string>(),
              HasSubstr("--min-chunk"));
}

TEST(Mcp, WhatDoesNotFitIsAnAnswer) {
  const json result = result_of_call("simulate", {{"model", "gpt2-xl"}, {"device-capacity", "2Gi"}});
  EXPECT_EQ(result["isError"], false);
  EXPECT_EQ(result["structuredContent"]["fits"], false);
}

TEST(Mcp, AFailedCommandSaysWhatAndWhatHelps) {
  const json result = result_of_call("simulate", {{"modle", "gpt2"}});
  EXPECT_EQ(result["isError"], true);
  EXPECT_EQ(result["structuredContent"]["error"]["exit_code"], 2);
  EXPECT_EQ(result["structuredContent"]["error"]["what"], "unknown option '--modle'");
  EXPECT_THAT(result["structuredContent"]["error"]["help"].get<std::string>(), HasSubstr("did you mean '--model'?"));
}

TEST(Mcp, WhatIsNoRequestIsRefusedByItsCode) {
  const std::vector<json> answers =
      answers_to({"{\"jsonrpc\":", request(1, "resources/list"), call(2, "train", json::object()), "7",
                  request(3, "tools/call", {{"name", "simulate"}, {"arguments", 1}}), "", request(4, "ping")});
  std::vector<int> codes;
  for (const json& each : answers) codes.push_back(each.value("/error/code"_json_pointer, 0));
  EXPECT_EQ(codes, (std::vector<int>{-32700, -32601, -32602, -32600, -32602, 0}));
  EXPECT_TRUE(answers.at(0)["id"].is_null());
  EXPECT_EQ(answers.at(5)["id"], 4);
  const std::vector<json> long_line = answers_to({std::string(std::size_t{5} << 20, 'x'), request(1, "ping")});
  ASSERT_EQ(long_line.size(), 2u);
  EXPECT_EQ(long_line[0]["error"]["code"], -32600);
}

TEST(Mcp, ACancelledCallIsNotAnswered) {
  const std::vector<json> answers =
      answers_to({call("long", "search", {{"model", "gpt2-xl"}, {"world-size", 8}}),
                  R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long"}})",
                  request("next", "ping")});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0]["id"], "next");
}

TEST(Mcp, ABatchIsAnsweredInOneLine) {
  const std::vector<json> answers =
      answers_to({"[" + request(1, "ping") + "," + call(2, "inspect", {{"file", json::array({"gpt2"})}}) + "]"});
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_EQ(answers[0].size(), 2u);
  EXPECT_EQ(answers[0][1]["result"]["structuredContent"]["parameter_count"], 124439808);
}

}  // namespace
}  // namespace shard::test
